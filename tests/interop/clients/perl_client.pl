#!/usr/bin/env perl
# Every command of Cache::Memcached::Fast; see run_client in larder_test.py for the lines this speaks.
# The multis answer with one hash in scalar context only.
use strict;
use warnings;
use Cache::Memcached::Fast;
use Time::HiRes qw(time sleep);

$| = 1;
my ($host, $port) = @ARGV[-2, -1];
my @sizes = (0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024);
my $tail = "\r\n<tail>";
my %options = (
    servers => ["$host:$port"],
    io_timeout => 60,
    max_size => 8 << 20,
);
my $m = Cache::Memcached::Fast->new({ %options, namespace => 'plain:' });
# In void context this one asks for no answers.
my $quiet = Cache::Memcached::Fast->new({ %options, namespace => 'plain:', nowait => 1 });
my $packed = Cache::Memcached::Fast->new({
    %options,
    namespace => 'packed:',
    compress_threshold => 1000,
    compress_methods => [
        sub { ${ $_[1] } = join '', map { chr(ord($_) ^ 0x55) } split //, substr(${ $_[0] }, 0, 100) },
        sub { ${ $_[1] } = join '', map { chr(ord($_) ^ 0x55) } split //, ${ $_[0] } },
    ],
});

sub value_of {
    my $size = shift;
    my $block = join '', map { chr(($_ * 31 + $size) % 256) } 0 .. 255;
    return $block x int($size / 256) . substr($block, 0, $size % 256);
}

sub shown {
    my $value = shift;
    return 'undef' unless defined $value;
    my $text = ref $value eq 'ARRAY' ? '[' . join(', ', map { shown($_) } @$value) . ']'
        : ref $value eq 'HASH' ? '{' . join(', ', map { "$_: " . shown($value->{$_}) } sort keys %$value) . '}'
        : $value;
    $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
    return $text;
}

sub check {
    my ($name, $got, $want) = @_;
    ($got, $want) = (shown($got), shown($want));
    if ($got eq $want) {
        print "ok $name\n";
    } else {
        print "not ok $name: got ", substr($got, 0, 100), ", want ", substr($want, 0, 100), "\n";
    }
}

sub ask {
    print "$_[0]\n";
    my $answer = <STDIN>;
    chomp $answer;
    return $answer;
}

sub check_ttl {
    my ($name, $key, $most, $least) = @_;
    my $left = ask("ttl $key");
    check("$name (ttl of $left)", ($left =~ /^-?\d+$/ && $left >= $least && $left <= $most) ? 1 : 0, 1);
}

# What is set before it settles.
for my $size (@sizes) {
    my $value = value_of($size);
    for my $use (qw(get gets add replace append prepend cas stale delete touch gat gats)) {
        check("set $use $size", $m->set("$use:$size", $value, 3600), 1);
    }
}
check('set_multi', scalar $m->set_multi(map { ["many:$_", value_of($_), 3600] } 0 .. 49), { map { ("many:$_" => 1) } 0 .. 49 });
for my $use (qw(m:add m:replace m:append m:prepend m:cas m:delete m:touch m:gat q:set q:add q:replace q:append q:prepend
        q:delete q:touch q:cas)) {
    $m->set("$use:$_", 'old', 3600) for 1 .. 3;
}
for my $use (qw(incr decr multi:1 multi:2 quiet get)) {
    $m->set("number:$use", '1234567890', 3600);
}
$m->set('number:below', '10');
$m->set('number:wrap', '18446744073709551615');
$m->set('nonumber', 'ten', 3600);
$m->set("ttl:$_", 'x' x 50, $_) for 6, 600, 86400, 0;
my $short_lived_since = time;
$m->set('gone', 'here');
check('set, negative ttl', $m->set('gone', 'x', -1), 1);
$m->set('too-large', 'old');
my %old_cas = map { ($_ => $m->gets("stale:$_")->[0]) } @sizes;
$m->set("stale:$_", value_of($_), 3600) for @sizes;
my $structure = { list => [1, 2, 3], text => 'words' };
check('set of a structure', $packed->set('structure', $structure), 1);
check('set, compressed', $packed->set('compressed', 'a' x 5000), 1);
ask('settle');

for my $size (@sizes) {
    my $value = value_of($size);
    check("get $size", $m->get("get:$size"), $value);
    my $got = $m->gets("gets:$size");
    check("gets $size", [$got->[0] =~ /^[1-9]\d*$/ ? 1 : 0, $got->[1]], [1, $value]);
    check("add $size, there", $m->add("add:$size", 'new'), '');
    check("add $size, value", $m->get("add:$size"), $value);
    check("replace $size", $m->replace("replace:$size", 'new', 60), 1);
    check("replace $size, value", $m->get("replace:$size"), 'new');
    check("append $size", $m->append("append:$size", $tail), 1);
    check("append $size, value", $m->get("append:$size"), $value . $tail);
    check("prepend $size", $m->prepend("prepend:$size", $tail), 1);
    check("prepend $size, value", $m->get("prepend:$size"), $tail . $value);
    check("cas $size, out of date", $m->cas("stale:$size", $old_cas{$size}, 'new'), '');
    check("cas $size, out of date, value", $m->get("stale:$size"), $value);
    my $cas = $m->gets("cas:$size")->[0];
    check("cas $size", $m->cas("cas:$size", $cas, 'new', 3600), 1);
    check("cas $size, again", $m->cas("cas:$size", $cas, 'newer'), '');
    check("cas $size, value", $m->get("cas:$size"), 'new');
    check("touch $size", $m->touch("touch:$size", 7200), 1);
    check_ttl("touch $size, ttl", "plain:touch:$size", 7200, 7190);
    check("touch $size, value", $m->get("touch:$size"), $value);
    check("gat $size", $m->gat(7200, "gat:$size"), $value);
    check_ttl("gat $size, ttl", "plain:gat:$size", 7200, 7190);
    check("gats $size", $m->gats(7200, "gats:$size")->[1], $value);
    check_ttl("gats $size, ttl", "plain:gats:$size", 7200, 7190);
    check("delete $size", $m->delete("delete:$size"), 1);
    check("delete $size, again", $m->delete("delete:$size"), '');
    check("delete $size, value", $m->get("delete:$size"), undef);
}
check_ttl('append keeps the ttl', 'plain:append:100', 3600, 3000);
check_ttl('replace sets the ttl', 'plain:replace:100', 60, 50);

check('add, missing', $m->add('no:add', 'x'), 1);
check("$_, missing", $m->$_("no:$_", 'x'), '') for qw(replace append prepend);
check('get, missing', $m->get('no'), undef);
check('gets, missing', $m->gets('no'), undef);
check('gat, missing', $m->gat(10, 'no'), undef);
check('gats, missing', $m->gats(10, 'no'), undef);
# Both "not found" and "exists" are false to this client.
check('cas, missing', $m->cas('no', 1, 'x') ? 1 : 0, 0);
check('delete, missing', $m->delete('no') ? 1 : 0, 0);
check('touch, missing', $m->touch('no', 1) ? 1 : 0, 0);
check('incr, missing', $m->incr('no', 1) ? 1 : 0, 0);
check('decr, missing', $m->decr('no', 1) ? 1 : 0, 0);

check('get of a number', $m->get('number:get'), '1234567890');
check('incr', $m->incr('number:incr', 10), '1234567900');
check('incr without a delta', $m->incr('number:incr'), '1234567901');
check_ttl('incr keeps the ttl', 'plain:number:incr', 3600, 3000);
check('decr', $m->decr('number:decr', 90), '1234567800');
check('decr to fewer digits', $m->decr('number:below', 1), '9');
check('decr to fewer digits, value', $m->get('number:below'), '9 ');
check('decr below 0', $m->decr('number:below', 100) + 0, 0);
check('incr past 2^64', $m->incr('number:wrap', 2), '1');
check('incr of no number', $m->incr('nonumber', 1), undef);
check('incr of no number, value', $m->get('nonumber'), 'ten');
check('incr_multi', scalar $m->incr_multi(['number:multi:1', 5], ['number:multi:2']),
    { 'number:multi:1' => '1234567895', 'number:multi:2' => '1234567891' });
check('decr_multi', scalar $m->decr_multi(['number:multi:1', 5], 'number:multi:2'),
    { 'number:multi:1' => '1234567890', 'number:multi:2' => '1234567890' });

my %many = map { ("many:$_" => value_of($_)) } 0 .. 49;
$m->set('fresh:1', 'fresh one');
$m->set('fresh:2', value_of(5000));
my @mixed = ('fresh:1', sort(keys %many), 'no:1', 'get:102400', 'fresh:2', 'no:2', 'get:0');
my %want = (%many, 'fresh:1' => 'fresh one', 'fresh:2' => value_of(5000), map { ("get:$_" => value_of($_)) } 0, 102400);
check('get_multi of fresh, settled and missing keys', $m->get_multi(@mixed), \%want);
my $gets = $m->gets_multi(@mixed);
check('gets_multi', { map { ($_ => $gets->{$_}[1]) } keys %$gets }, \%want);
check('gat_multi', $m->gat_multi(7200, @mixed), \%want);
check_ttl('gat_multi, ttl', 'plain:many:7', 7200, 7190);
my $gats = $m->gats_multi(7100, @mixed);
check('gats_multi', { map { ($_ => $gats->{$_}[1]) } keys %$gats }, \%want);
check_ttl('gats_multi, ttl', 'plain:many:7', 7100, 7090);
check('get_multi, none there', $m->get_multi('no:1', 'no:2'), {});
check('add_multi', scalar $m->add_multi(['m:add:1', 'new'], ['m:add:new', 'new']), { 'm:add:1' => '', 'm:add:new' => 1 });
check('replace_multi', scalar $m->replace_multi(['m:replace:1', 'new'], ['m:replace:no', 'new']),
    { 'm:replace:1' => 1, 'm:replace:no' => '' });
check('append_multi', scalar $m->append_multi(['m:append:1', '+'], ['m:append:no', '+']),
    { 'm:append:1' => 1, 'm:append:no' => '' });
check('prepend_multi', scalar $m->prepend_multi(['m:prepend:1', '+'], ['m:prepend:no', '+']),
    { 'm:prepend:1' => 1, 'm:prepend:no' => '' });
check('the multis, values', $m->get_multi(map { "m:$_:1" } qw(add replace append prepend)),
    { 'm:add:1' => 'old', 'm:replace:1' => 'new', 'm:append:1' => 'old+', 'm:prepend:1' => '+old' });
my $uniques = $m->gets_multi('m:cas:1', 'm:cas:2');
check('cas_multi', scalar $m->cas_multi(['m:cas:1', $uniques->{'m:cas:1'}[0], 'new'], ['m:cas:2', 1, 'new']),
    { 'm:cas:1' => 1, 'm:cas:2' => '' });
check('cas_multi, values', $m->get_multi('m:cas:1', 'm:cas:2'), { 'm:cas:1' => 'new', 'm:cas:2' => 'old' });
check('touch_multi', scalar $m->touch_multi(['m:touch:1', 7200], ['m:touch:2', 7200]), { 'm:touch:1' => 1, 'm:touch:2' => 1 });
check_ttl('touch_multi, ttl', 'plain:m:touch:2', 7200, 7190);
check('delete_multi', scalar $m->delete_multi('m:delete:1', 'm:delete:2'), { 'm:delete:1' => 1, 'm:delete:2' => 1 });
check('delete_multi, values', $m->get_multi(map { "m:delete:$_" } 1 .. 3), { 'm:delete:3' => 'old' });

# In void context, so without answers; the get behind each comes over the same connection.
$quiet->set('q:set:1', 'new');
check('set, quiet', $quiet->get('q:set:1'), 'new');
$quiet->add('q:add:1', 'new');
$quiet->add('q:add:new', 'new');
check('add, quiet', $quiet->get_multi('q:add:1', 'q:add:new'), { 'q:add:1' => 'old', 'q:add:new' => 'new' });
$quiet->replace('q:replace:1', 'new');
check('replace, quiet', $quiet->get('q:replace:1'), 'new');
$quiet->append('q:append:1', '+');
check('append, quiet', $quiet->get('q:append:1'), 'old+');
$quiet->prepend('q:prepend:1', '+');
check('prepend, quiet', $quiet->get('q:prepend:1'), '+old');
$quiet->cas('q:cas:1', 1, 'new');
check('cas, quiet, out of date', $quiet->get('q:cas:1'), 'old');
$quiet->cas('q:cas:1', $quiet->gets('q:cas:1')->[0], 'new');
check('cas, quiet', $quiet->get('q:cas:1'), 'new');
$quiet->incr('number:quiet', 5);
check('incr, quiet', $quiet->get('number:quiet'), '1234567895');
$quiet->decr('number:quiet', 6);
check('decr, quiet', $quiet->get('number:quiet'), '1234567889');
$quiet->touch('q:touch:1', 7200);
check('touch, quiet', $quiet->get('q:touch:1'), 'old');
check_ttl('touch, quiet, ttl', 'plain:q:touch:1', 7200, 7190);
$quiet->delete('q:delete:1');
check('delete, quiet', $quiet->get('q:delete:1'), undef);
$quiet->set("q:burst:$_", "value $_", 3600) for 1 .. 5000;
$quiet->nowait_push;
check('nowait_push of 5000 sets', $m->get('q:burst:5000'), 'value 5000');

check('a structure comes back', $packed->get('structure'), $structure);
check('compressed: the flag comes back', length($packed->get('compressed')), 100);

check_ttl('ttl of 600', 'plain:ttl:600', 600, 480);
check_ttl('ttl of a day', 'plain:ttl:86400', 86400, 86280);
check_ttl('ttl of 0', 'plain:ttl:0', -1, -1);
check('negative ttl hides the item', $m->get('gone'), undef);
check('add over a negative ttl', $m->add('gone', 'back'), 1);
check('set, too large', $m->set('too-large', 'x' x (2 << 20)), undef);
check('set, too large, drops what was there', $m->get('too-large'), undef);
my $wait = 7.1 - (time - $short_lived_since);
sleep $wait if $wait > 0;
check('gone after its ttl of 6', $m->get('ttl:6'), undef);
check('add after its ttl', $m->add('ttl:6', 'x'), 1);

check('server_versions', (values %{ $m->server_versions })[0] =~ /^1\.6\.\d+$/ ? 1 : 0, 1);
check('namespace', $m->namespace, 'plain:');
$m->namespace('other:');
check('another namespace', $m->get('get:100'), undef);
$m->namespace('plain:');
$m->enable_compress(0);
$m->set('flush:1', 'x', 60);
$m->set('flush:large', value_of(100 * 1024), 60);
ask('settle');
$m->set('flush:fresh', 'x', 60);
check('before flush_all', $m->get('flush:1'), 'x');
check('flush_all', (values %{ $m->flush_all })[0], 1);
check('flush_all: all are gone', $m->get_multi('flush:1', 'flush:large', 'flush:fresh'), {});
check('set after flush_all', $m->set('flush:1', 'y') && $m->get('flush:1'), 'y');
check('flush_all in 2 seconds', (values %{ $m->flush_all(2) })[0], 1);
check('flush_all in 2 seconds: not yet', $m->get('flush:1'), 'y');
sleep 3.2;
check('flush_all in 2 seconds: gone', $m->get('flush:1'), undef);
$quiet->set('flush:1', 'z');
$quiet->flush_all;
check('flush_all, quiet', $quiet->get('flush:1'), undef);
$m->disconnect_all;
check('works again after disconnect_all', $m->set('again', 'x') && $m->get('again'), 'x');
