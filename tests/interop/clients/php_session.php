<?php
// PHP sessions in the daemon: written, pushed to the SSD, read, changed, locked against another process, destroyed.
// The session handler speaks the binary protocol unless it is told otherwise.

[$binary, $host, $port] = array_slice($argv, -3);
ini_set('session.save_handler', 'memcached');
ini_set('session.save_path', "$host:$port");
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
ini_set('session.gc_maxlifetime', '1440');
ini_set('memcached.sess_binary_protocol', $binary);
ini_set('memcached.sess_prefix', 'session:');
ini_set('memcached.sess_lock_wait_min', '20');
ini_set('memcached.sess_lock_wait_max', '20');
ini_set('memcached.sess_lock_retries', '10');
// Output would count as headers sent, and no session starts after that; so it is kept until the end of each part.
$said = '';

function check(string $name, mixed $got, mixed $want): void
{
    global $said;
    $said .= $got === $want ? "ok $name\n" : "not ok $name: got " . json_encode($got) . ', want ' . json_encode($want) . "\n";
}

function say(): void
{
    global $said;
    fwrite(STDOUT, $said);
    $said = '';
}

function ask(string $line): string
{
    say();
    fwrite(STDOUT, "$line\n");
    return trim(fgets(STDIN));
}

function open(string $id): bool
{
    session_id($id);
    return @session_start();
}

if ($argv[1] === '--other') {
    // Another process: can it have the session, and what does it see?
    echo open($argv[2]) ? 'opened ' . ($_SESSION['count'] ?? 'nothing') : 'refused';
    exit;
}

function other(string $id): string
{
    global $argv, $binary, $host, $port;
    $command = [PHP_BINARY, $argv[0], '--other', $id, $binary, $host, $port];
    return (string) shell_exec(implode(' ', array_map('escapeshellarg', $command)) . ' 2>/dev/null');
}

$large = str_repeat('0123456789', 30_000);
foreach (['one', 'two', 'three'] as $id) {
    check("a new session: $id", open("session$id"), true);
    check("a new session is empty: $id", $_SESSION, []);
    $_SESSION = ['count' => 1, 'large' => $id === 'two' ? $large : ''];
    check("it is written: $id", session_write_close(), true);
}
ask('settle');
$left = ask('ttl session:sessionone');
check("its lifetime is gc_maxlifetime (ttl of $left)", $left <= 1440 && $left > 1300, true);
check('read again', open('sessionone'), true);
check('its content', $_SESSION, ['count' => 1, 'large' => '']);
$_SESSION['count'] = 2;
check('locked against another process', other('sessionone'), 'refused');
check('changed', session_write_close(), true);
check('another process sees the change', other('sessionone'), 'opened 2');
check('a large one, read again', open('sessiontwo') && $_SESSION['large'] === $large, true);
check('a new id', session_regenerate_id(true), true);
$id = session_id();
check('written under the new id', session_write_close(), true);
check('another process has it under the new id', other($id), 'opened 1');
check('nothing is left under the old id', other('sessiontwo'), 'opened nothing');
check('read again, to destroy', open('sessionthree'), true);
check('destroyed', session_destroy(), true);
check('nothing is left of it', other('sessionthree'), 'opened nothing');
say();
