<?php
// The loop of an old test of fatcache: md5 keys, values of five md5 (160 bytes), and a ttl of 60 to 600 seconds. The
// time to make the md5 counts, as it did then. Prints one line of JSON.
[$client, $port, $items, $with_get] = array_slice($argv, -4);
if ($client === 'redis') {
    $m = new Redis();
    $m->connect('127.0.0.1', (int) $port);
    $set = fn (string $key, string $value, int $ttl) => $m->setex($key, $ttl, $value);
} else {
    $m = new Memcached();
    $m->addServer('127.0.0.1', (int) $port);
    $set = fn (string $key, string $value, int $ttl) => $m->set($key, $value, $ttl);
}
$failed = $wrong = 0;
$start = hrtime(true);
for ($i = 1; $i <= $items; ++$i) {
    $key = md5(rand());
    $value = md5(rand()) . md5(rand()) . md5(rand()) . md5(rand()) . md5(rand());
    $failed += $set($key, $value, rand(60, 600)) ? 0 : 1;
    if ($with_get) {
        $wrong += $m->get($key) === $value ? 0 : 1;
    }
}
$seconds = (hrtime(true) - $start) / 1e9;
echo json_encode(['seconds' => $seconds, 'sets_failed' => $failed, 'gets_wrong' => $wrong]), "\n";
