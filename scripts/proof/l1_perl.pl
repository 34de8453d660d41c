# Prints the nanoseconds of one read of a hot key with Cache::FastMmap: `BYTES`, median of 101 rounds.
use strict;
use warnings;
use Cache::FastMmap;
use Time::HiRes qw(time);

my ($bytes) = @ARGV;
my $rounds = 101;
my $calls  = int(1_000_000 / ($bytes + 100)) || 1;
$calls = 10 if $calls < 10;
my $cache = Cache::FastMmap->new(raw_values => 1, share_file => "/dev/shm/l1-perl-$$", init_file => 1, unlink_on_exit => 1,
    cache_size => '64m');
my $value = "\x07" x $bytes;
$cache->set('key:000000', $value);
die 'not the value' if $cache->get('key:000000') ne $value;
my @times;
for my $round (1 .. $rounds) {
    my $since = time;
    $cache->get('key:000000') for 1 .. $calls;
    push @times, (time - $since) / $calls * 1e9;
}
@times = sort { $a <=> $b } @times;
print "$times[$rounds / 2]\n";
