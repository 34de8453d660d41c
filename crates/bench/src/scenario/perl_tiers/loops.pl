# Sets a value and reads it so many times, or sets and reads it each time. Ends after so many iterations or seconds,
# whichever comes first, and prints one line: iterations, seconds, misses, wrong values.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($store, $place, $file, $with_set, $iterations, $seconds_max, $folder) = @ARGV;
open(my $handle, '<', $file) or die "$file: $!";
my $value = do { local $/; <$handle> };
close $handle;

my ($get, $set);
if ($store eq 'mmap') {
    require Cache::Mmap;
    my $cache = Cache::Mmap->new("$folder/mmap", { buckets => 13, bucketsize => 65536, strings => 1, writethrough => 0 });
    $get = sub { scalar $cache->read('page') };
    $set = sub { $cache->write('page', $value); 1 };
} elsif ($store eq 'fastmmap') {
    require Cache::FastMmap;
    my $cache = Cache::FastMmap->new(share_file => "$folder/fastmmap", init_file => 1, serializer => '',
        page_size => '64k', num_pages => 13);
    $get = sub { $cache->get('page') };
    $set = sub { $cache->set('page', $value) };
} else {
    require Cache::Memcached::Fast;
    my $cache = Cache::Memcached::Fast->new({ servers => [$place], io_timeout => 10, connect_timeout => 5 });
    $get = sub { $cache->get('page') };
    $set = sub { $cache->set('page', $value) };
}

$set->() or die "$store: the value can not be set\n";
my ($misses, $wrong, $done) = (0, 0, 0);
my $start = time;
while ($done < $iterations) {
    last if $done % 50 == 49 && time - $start > $seconds_max;
    $set->() if $with_set;
    my $found = $get->();
    if (!defined $found) {
        ++$misses;
        $set->();
    } elsif ($found ne $value) {
        ++$wrong;
    }
    ++$done;
}
printf "%d %.6f %d %d\n", $done, time - $start, $misses, $wrong;
