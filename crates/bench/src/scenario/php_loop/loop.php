<?php
// Sets items with random keys, values of five md5 and an expiry of 60 to 600 seconds, and reads each back if asked to.
// Ends after so many items or seconds, whichever comes first, and prints one line: start, seconds, items, failed sets,
// wrong gets.
[, $host, $port, $items, $with_get, $seconds_max] = $argv;
$m = new Memcached();
$m->addServer($host, (int) $port, 33);
$failed = $wrong = 0;
$start = microtime(true);
for ($i = 0; $i < (int) $items; ++$i) {
    if ($i % 100 === 99 && microtime(true) - $start > (float) $seconds_max) {
        break;
    }
    $key = md5(rand());
    $value = md5(rand()) . md5(rand()) . md5(rand()) . md5(rand()) . md5(rand());
    $failed += $m->set($key, $value, rand(60, 600)) ? 0 : 1;
    if ($with_get) {
        $wrong += $m->get($key) === $value ? 0 : 1;
    }
}
printf("%.6f %.6f %d %d %d\n", $start, microtime(true) - $start, $i, $failed, $wrong);
