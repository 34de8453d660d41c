<?php
// Every command of php-memcached, over the text or the binary protocol; see run_client in larder_test.py for the lines
// this speaks.

const SIZES = [0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024];
const TAIL = "\r\n<tail>";
[$protocol, $host, $port] = array_slice($argv, -3);
$binary = $protocol === 'binary';

function connect(): Memcached
{
    global $host, $port, $binary;
    $m = new Memcached();
    $m->setOptions([
        Memcached::OPT_BINARY_PROTOCOL => $binary,
        Memcached::OPT_COMPRESSION => false,
        Memcached::OPT_TCP_NODELAY => true,
        Memcached::OPT_SEND_TIMEOUT => 60_000_000,
        Memcached::OPT_RECV_TIMEOUT => 60_000_000,
        Memcached::OPT_POLL_TIMEOUT => 60_000,
    ]);
    $m->addServer($host, (int) $port);
    return $m;
}

function value_of(int $size): string
{
    $block = '';
    for ($i = 0; $i < 256; ++$i) {
        $block .= chr(($i * 31 + $size) % 256);
    }
    return str_repeat($block, intdiv($size, 256)) . substr($block, 0, $size % 256);
}

function short(mixed $value): string
{
    $text = is_string($value) ? addcslashes($value, "\0..\37\177..\377") : json_encode($value, JSON_INVALID_UTF8_SUBSTITUTE);
    $text = str_replace("\n", ' ', gettype($value) . ' ' . $text);
    return strlen($text) < 100 ? $text : substr($text, 0, 50) . '...' . substr($text, -50);
}

function check(string $name, mixed $got, mixed $want): void
{
    global $m;
    if ($got === $want) {
        echo "ok $name\n";
    } else {
        echo "not ok $name: got ", short($got), ', want ', short($want), ' (', $m->getResultMessage(), ")\n";
    }
}

function check_result(string $name, int $want): void
{
    global $m;
    check("$name, result code", $m->getResultCode(), $want);
}

function ask(string $line): string
{
    echo "$line\n";
    return trim(fgets(STDIN));
}

function check_ttl(string $name, string $key, int $most, int $least): void
{
    $left = ask("ttl $key");
    check("$name (ttl of $left)", is_numeric($left) && $left >= $least && $left <= $most, true);
}

function with_cas(string $key): array
{
    global $m;
    $got = $m->get($key, null, Memcached::GET_EXTENDED);
    return $got === false ? [false, 0] : [$got['value'], $got['cas']];
}

// The ByKey methods do the same with a key of the server's in front, and casByKey has it second.
function call(bool $by_key, string $method, mixed ...$arguments): mixed
{
    global $m;
    if ($by_key) {
        array_splice($arguments, $method === 'cas' ? 1 : 0, 0, ['server']);
        $method .= 'ByKey';
    }
    return $m->$method(...$arguments);
}

$m = connect();
check('isPersistent', $m->isPersistent(), false);
check('isPristine', $m->isPristine(), true);
$old_cas = [];
foreach ([false, true] as $by_key) {
    $p = $by_key ? 'by:' : '';
    foreach (SIZES as $size) {
        foreach (['get', 'add', 'replace', 'append', 'prepend', 'cas', 'stale', 'delete', 'touch'] as $use) {
            check("set {$p}$use $size", call($by_key, 'set', "$p$use:$size", value_of($size), 3600), true);
        }
        $old_cas["$p$size"] = with_cas("{$p}stale:$size")[1];
        $m->set("{$p}stale:$size", value_of($size), 3600);
    }
    $many = [];
    for ($i = 0; $i < 50; ++$i) {
        $many["{$p}many:$i"] = value_of($i);
    }
    check("{$p}setMulti", call($by_key, 'setMulti', $many, 3600), true);
    foreach (['incr', 'decr', 'get'] as $use) {
        $m->set("{$p}number:$use", '1234567890', 3600);
    }
    $m->set("{$p}number:below", '10', 3600);
}
$m->set('number:wrap', '18446744073709551615', 3600);
$m->set('nonumber', 'ten', 3600);
foreach (['set', 'add', 'replace', 'append', 'prepend', 'delete', 'touch', 'incr', 'cas'] as $use) {
    $m->set("quiet:$use", $use === 'incr' ? '100' : 'old', 3600);
}
$types = ['int' => 7, 'negative' => -7, 'float' => 1.5, 'yes' => true, 'no' => false, 'list' => [1, ['two' => null]], 'text' => 'x'];
foreach ($types as $type => $value) {
    check("set of $type", $m->set("type:$type", $value, 3600), true);
}
$m->setOption(Memcached::OPT_COMPRESSION, true);
$m->set('compressed', str_repeat('a', 50_000), 3600);
$m->setOption(Memcached::OPT_COMPRESSION, false);
$m->setOption(Memcached::OPT_USER_FLAGS, 0xabc);
$m->set('user-flags', 'x', 3600);
$m->setOption(Memcached::OPT_USER_FLAGS, -1);
foreach ([6, 600, 86400, 0] as $ttl) {
    $m->set("ttl:$ttl", str_repeat('x', 50), $ttl);
}
$m->set('ttl:moment', 'x', time() + 5_000_000);
$short_lived_since = microtime(true);
$m->set('gone', 'here');
// Beyond thirty days is a moment, and this one has passed. It is also how libmemcached asks whether a key exists.
check('set, ttl in the past', $m->set('gone', 'x', 2678400), true);
$m->set('negative', 'here');
$m->set('negative', 'x', -1);
$m->set('too-large', 'old');
ask('settle');

foreach ([false, true] as $by_key) {
    $p = $by_key ? 'by:' : '';
    foreach (SIZES as $size) {
        $value = value_of($size);
        check("{$p}get $size", call($by_key, 'get', "{$p}get:$size"), $value);
        $got = call($by_key, 'get', "{$p}get:$size", null, Memcached::GET_EXTENDED);
        check("{$p}get with cas $size", [$got['value'], $got['cas'] > 0], [$value, true]);
        check("{$p}add $size, there", call($by_key, 'add', "{$p}add:$size", 'new'), false);
        check_result("{$p}add $size, there", $binary ? Memcached::RES_DATA_EXISTS : Memcached::RES_NOTSTORED);
        check("{$p}add $size, value", $m->get("{$p}add:$size"), $value);
        check("{$p}replace $size", call($by_key, 'replace', "{$p}replace:$size", 'new', 60), true);
        check("{$p}replace $size, value", $m->get("{$p}replace:$size"), 'new');
        check("{$p}append $size", call($by_key, 'append', "{$p}append:$size", TAIL), true);
        check("{$p}append $size, value", $m->get("{$p}append:$size"), $value . TAIL);
        check("{$p}prepend $size", call($by_key, 'prepend', "{$p}prepend:$size", TAIL), true);
        check("{$p}prepend $size, value", $m->get("{$p}prepend:$size"), TAIL . $value);
        check("{$p}cas $size, out of date", call($by_key, 'cas', $old_cas["$p$size"], "{$p}stale:$size", 'new'), false);
        check_result("{$p}cas $size, out of date", Memcached::RES_DATA_EXISTS);
        check("{$p}cas $size, out of date, value", $m->get("{$p}stale:$size"), $value);
        [, $cas] = with_cas("{$p}cas:$size");
        check("{$p}cas $size", call($by_key, 'cas', $cas, "{$p}cas:$size", 'new', 3600), true);
        check("{$p}cas $size, again", call($by_key, 'cas', $cas, "{$p}cas:$size", 'newer', 3600), false);
        check("{$p}cas $size, value", $m->get("{$p}cas:$size"), 'new');
        check("{$p}touch $size", call($by_key, 'touch', "{$p}touch:$size", 7200), true);
        check_ttl("{$p}touch $size, ttl", "{$p}touch:$size", 7200, 7190);
        check("{$p}touch $size, value", $m->get("{$p}touch:$size"), $value);
        check("{$p}delete $size", call($by_key, 'delete', "{$p}delete:$size"), true);
        check("{$p}delete $size, again", call($by_key, 'delete', "{$p}delete:$size"), false);
        check_result("{$p}delete $size, again", Memcached::RES_NOTFOUND);
        check("{$p}delete $size, value", $m->get("{$p}delete:$size"), false);
    }
    check_ttl("{$p}append keeps the ttl", "{$p}append:100", 3600, 3000);
    check_ttl("{$p}replace sets the ttl", "{$p}replace:100", 60, 50);

    $no = "{$p}no";
    check("{$p}get, missing", call($by_key, 'get', $no), false);
    check_result("{$p}get, missing", Memcached::RES_NOTFOUND);
    check("{$p}add, missing", call($by_key, 'add', "$no:add", 'x'), true);
    check("{$p}replace, missing", call($by_key, 'replace', $no, 'x'), false);
    check("{$p}append, missing", call($by_key, 'append', $no, 'x'), false);
    check_result("{$p}append, missing", Memcached::RES_NOTSTORED);
    check("{$p}prepend, missing", call($by_key, 'prepend', $no, 'x'), false);
    check("{$p}cas, missing", call($by_key, 'cas', 1, $no, 'x'), false);
    check_result("{$p}cas, missing", Memcached::RES_NOTFOUND);
    check("{$p}touch, missing", call($by_key, 'touch', $no, 10), false);
    check_result("{$p}touch, missing", Memcached::RES_NOTFOUND);
    check("{$p}delete, missing", call($by_key, 'delete', $no), false);
    check("{$p}increment, missing", call($by_key, 'increment', $no, 1), false);
    check_result("{$p}increment, missing", Memcached::RES_NOTFOUND);
    check("{$p}decrement, missing", call($by_key, 'decrement', $no, 1), false);

    check("{$p}get of a number", $m->get("{$p}number:get"), '1234567890');
    check("{$p}increment", call($by_key, 'increment', "{$p}number:incr", 10), 1234567900);
    check("{$p}increment, again", call($by_key, 'increment', "{$p}number:incr"), 1234567901);
    check_ttl("{$p}increment keeps the ttl", "{$p}number:incr", 3600, 3000);
    check("{$p}decrement", call($by_key, 'decrement', "{$p}number:decr", 90), 1234567800);
    check("{$p}decrement to fewer digits", call($by_key, 'decrement', "{$p}number:below", 1), 9);
    check("{$p}decrement to fewer digits, value", $m->get("{$p}number:below"), '9 ');
    check("{$p}decrement below 0", call($by_key, 'decrement', "{$p}number:below", 100), 0);
    if ($binary) {
        check("{$p}increment from an initial value, missing", call($by_key, 'increment', "$no:incr", 1, 77, 600), 77);
        check("{$p}increment from an initial value, there", call($by_key, 'increment', "$no:incr", 1, 77, 600), 78);
        check_ttl("{$p}increment from an initial value, ttl", "$no:incr", 600, 590);
        check("{$p}decrement from an initial value, missing", call($by_key, 'decrement', "$no:decr", 1, 5, 600), 5);
        check("{$p}decrement from an initial value, there", call($by_key, 'decrement', "$no:decr", 1, 5, 600), 4);
    }

    $want = ["{$p}fresh:1" => 'fresh one', "{$p}get:102400" => value_of(102400)];
    for ($i = 0; $i < 50; ++$i) {
        $want["{$p}many:$i"] = value_of($i);
    }
    $want += ["{$p}fresh:2" => value_of(5000), "{$p}get:0" => ''];
    $m->set("{$p}fresh:1", 'fresh one');
    $m->set("{$p}fresh:2", value_of(5000));
    $mixed = [];
    foreach (array_keys($want) as $i => $key) {
        $mixed[] = $key;
        if ($i % 10 === 0) {
            $mixed[] = "$no:$i";
        }
    }
    $got = call($by_key, 'getMulti', $mixed);
    // The binary protocol's answers come in any order to this client.
    $sorted = $want;
    is_array($got) && ksort($got);
    ksort($sorted);
    check("{$p}getMulti of fresh, settled and missing keys", $got, $sorted);
    $got = call($by_key, 'getMulti', $mixed, Memcached::GET_PRESERVE_ORDER);
    check("{$p}getMulti, in order", is_array($got) ? array_filter($got, fn ($v) => $v !== null) : $got, $want);
    $got = call($by_key, 'getMulti', $mixed, Memcached::GET_EXTENDED);
    check("{$p}getMulti with cas", min(array_column($got, 'cas')) > 0 && count($got) === count($want), true);
    check("{$p}getDelayed", call($by_key, 'getDelayed', $mixed, true), true);
    $first = $m->fetch();
    check("{$p}fetch", $want[$first['key']], $first['value']);
    $rest = $m->fetchAll();
    check("{$p}fetchAll", count($rest), count($want) - 1);
    check("{$p}fetchAll, values", array_filter($rest, fn ($item) => $want[$item['key']] !== $item['value']), []);
    check("{$p}deleteMulti", call($by_key, 'deleteMulti', ["{$p}many:1", "{$p}many:2"]),
        ["{$p}many:1" => true, "{$p}many:2" => true]);
    check("{$p}deleteMulti, missing", call($by_key, 'deleteMulti', ["{$p}many:1"]), ["{$p}many:1" => Memcached::RES_NOTFOUND]);
}

check('increment past 2^64', $m->increment('number:wrap', 2), 1);
check('increment of no number', $m->increment('nonumber', 1), false);
check('increment of no number, value', $m->get('nonumber'), 'ten');
foreach ($types as $type => $value) {
    check("get of $type", $m->get("type:$type"), $value);
}
check('compressed comes back', $m->get('compressed'), str_repeat('a', 50_000));
check('user flags come back', $m->get('user-flags', null, Memcached::GET_EXTENDED)['flags'], 0xabc);
check('get with a callback, missing', $m->get('no:callback', function ($m, $key, &$value, &$ttl) {
    [$value, $ttl] = ["made for $key", 600];
    return true;
}), 'made for no:callback');
check('get with a callback: stored', $m->get('no:callback'), 'made for no:callback');
check_ttl('get with a callback: ttl', 'no:callback', 600, 590);

$quiet = connect();
$quiet->setOption(Memcached::OPT_NOREPLY, true);
// A read on this connection comes back only when the quiet requests before it are done.
$read = function (string $key) use ($quiet) {
    $quiet->setOption(Memcached::OPT_NOREPLY, false);
    $value = $quiet->get($key);
    $quiet->setOption(Memcached::OPT_NOREPLY, true);
    return $value;
};
$quiet->set('quiet:set', 'new', 3600);
check('set, quiet', $read('quiet:set'), 'new');
$quiet->add('quiet:add', 'new');
$quiet->add('quiet:add-new', 'new');
check('add, quiet', [$read('quiet:add'), $read('quiet:add-new')], ['old', 'new']);
$quiet->replace('quiet:replace', 'new');
check('replace, quiet', $read('quiet:replace'), 'new');
$quiet->append('quiet:append', '+');
check('append, quiet', $read('quiet:append'), 'old+');
$quiet->prepend('quiet:prepend', '+');
check('prepend, quiet', $read('quiet:prepend'), '+old');
$quiet->cas(1, 'quiet:cas', 'new');
check('cas, quiet, out of date', $read('quiet:cas'), 'old');
$quiet->delete('quiet:delete');
check('delete, quiet', $read('quiet:delete'), false);
for ($i = 0; $i < 5000; ++$i) {
    $quiet->set("quiet:burst:$i", "value $i", 3600);
}
check('5000 quiet sets', $read('quiet:burst:4999'), 'value 4999');
$buffered = connect();
$buffered->setOption(Memcached::OPT_BUFFER_WRITES, true);
for ($i = 0; $i < 100; ++$i) {
    $buffered->set("buffered:$i", "value $i", 3600);
}
check('flushBuffers', $buffered->flushBuffers(), true);
check('buffered sets', $buffered->get('buffered:99'), 'value 99');

check_ttl('ttl of 600', 'ttl:600', 600, 480);
check_ttl('ttl of a day', 'ttl:86400', 86400, 86280);
// A moment is counted from the server's clock, whose second may be the one before.
check_ttl('ttl until a moment', 'ttl:moment', 5_000_001, 4_999_880);
check_ttl('ttl of 0', 'ttl:0', -1, -1);
check('a ttl in the past hides the item', $m->get('gone'), false);
check('add over a ttl in the past', $m->add('gone', 'back'), true);
if (!$binary) {
    // In the binary protocol exptime is unsigned, and -1 a moment in the next century.
    check('a negative ttl hides the item', $m->get('negative'), false);
    check('add over a negative ttl', $m->add('negative', 'back'), true);
}
check('checkKey, there', $m->checkKey('get:100'), true);
check('set, too large', $m->set('too-large', str_repeat('x', 2 << 20)), false);
check_result('set, too large', Memcached::RES_E2BIG);
check('set, too large, drops what was there', $m->get('too-large'), false);
usleep((int) max(0, 1e6 * (7.1 - (microtime(true) - $short_lived_since))));
check('gone after its ttl of 6', $m->get('ttl:6'), false);
check('touch after its ttl', $m->touch('ttl:6', 10), false);
check('add after its ttl', $m->add('ttl:6', 'x'), true);

check('getVersion', preg_match('/^1\.6\.\d+$/', current($m->getVersion())), 1);
$stats = current($m->getStats());
check('getStats', [str_starts_with($stats['version'], '1.6.'), $stats['cmd_set'] > 100], [true, true]);
check('getStats settings', current($m->getStats('settings'))['evictions'], 'on');
check('getStats items', is_array(current($m->getStats('items'))), true);
check('getStats slabs', is_array(current($m->getStats('slabs'))), true);
check('getServerByKey', $m->getServerByKey('get:100')['port'], (int) $port);
check('getServerList', count($m->getServerList()), 1);
if (!$binary) {
    // libmemcached has this in the text protocol only; whatever is found has to be keys.
    $keys = $m->getAllKeys();
    check('getAllKeys', is_array($keys) && count($keys) > 0, true);
}
$m->set('flush:1', 'x', 60);
$m->set('flush:large', value_of(102400), 60);
ask('settle');
$m->set('flush:fresh', 'x', 60);
check('before flush', $m->get('flush:1'), 'x');
check('flush', $m->flush(), true);
check('flush: all are gone', $m->getMulti(['flush:1', 'flush:large', 'flush:fresh']), []);
check('append after flush', $m->append('flush:1', 'x'), false);
check('set after flush', [$m->set('flush:1', 'y', 60), $m->get('flush:1')], [true, 'y']);
check('flush in 2 seconds', $m->flush(2), true);
check('flush in 2 seconds: not yet', $m->get('flush:1'), 'y');
usleep(3_200_000);
check('flush in 2 seconds: gone', $m->get('flush:1'), false);
check('quit', $m->quit(), true);
check('works again after quit', [$m->set('again', 'x'), $m->get('again')], [true, 'x']);
check('resetServerList', $m->resetServerList(), true);
