# Sets a value once and runs a loop over it: gets it, sets and gets it, or sets it. Ends after so many iterations or
# seconds, whichever comes first, and prints one line: iterations, seconds, misses, wrong values, values that came
# from the near tier, gets that went to the remote server.
use strict;
use warnings;
use Time::HiRes qw(time);

my ($store, $loop, $iterations, $seconds_max, $file, $folder, $key, $near_at, $far_at) = @ARGV;
my $lives = 3600;
open(my $handle, '<:raw', $file) or die "$file: $!\n";
my $value = do { local $/; <$handle> };
close $handle;

# A tier is a pair of functions: get, and set, which returns whether it did.
sub memcached {
    require Cache::Memcached::Fast;
    my $cache = Cache::Memcached::Fast->new({ servers => [shift], io_timeout => 10, connect_timeout => 5 });
    return (sub { $cache->get($key) }, sub { $cache->set($key, $value, $lives) });
}

# Room for a few values of this size in each part of a mapped file.
sub part_bytes {
    my $bytes = 65536;
    $bytes *= 2 while $bytes < 2 * length($value) + 4096;
    return $bytes;
}

sub mmap {
    require Cache::Mmap;
    my $cache = Cache::Mmap->new("$folder/mmap-" . part_bytes(),
        { buckets => 13, bucketsize => part_bytes(), strings => 1, writethrough => 0 });
    return (sub { scalar $cache->read($key) }, sub { $cache->write($key, $value); 1 });
}

sub fastmmap {
    require Cache::FastMmap;
    my $cache = eval {
        Cache::FastMmap->new(share_file => "$folder/fastmmap-" . part_bytes(), init_file => 1, serializer => '',
            page_size => part_bytes(), num_pages => 13);
    } or die "the value cannot be set: $@";
    return (sub { $cache->get($key) }, sub { $cache->set($key, $value) });
}

my ($near_hits, $far_gets) = (0, 0);

sub near { my ($get, $set) = @_; return (sub { my $found = $get->(); ++$near_hits if defined $found; $found }, $set) }
sub far { my ($get, $set) = @_; return (sub { ++$far_gets; $get->() }, $set) }

# The first tier is asked first, and filled with what only the second one has. A set goes to both.
sub tiered {
    my ($near_get, $near_set, $far_get, $far_set) = @_;
    my $get = sub {
        my $found = $near_get->();
        if (defined $found) {
            ++$near_hits;
            return $found;
        }
        ++$far_gets;
        $found = $far_get->();
        $near_set->() if defined $found;
        return $found;
    };
    return ($get, sub { $far_set->() && $near_set->() });
}

# The same with the fault of the document's TieredLmc: the variable that has the near tier's value ends with the block
# that got it, so the value is not there any more when it is to be returned.
sub tiered_near_lost {
    my ($near_get, $near_set, $far_get, $far_set) = @_;
    my $get = sub {
        my $found;
        if (defined(my $found = $near_get->())) {
            # This $found is another one.
        }
        if (defined $found) {
            ++$near_hits;
            return $found;
        }
        ++$far_gets;
        $found = $far_get->();
        $near_set->() if defined $found;
        return $found;
    };
    return ($get, sub { $far_set->() && $near_set->() });
}

my %stores = (
    'far' => sub { far(memcached($far_at)) },
    'near' => sub { near(memcached($near_at)) },
    'mmap' => sub { near(mmap()) },
    'fastmmap' => sub { near(fastmmap()) },
    'tiered-mmap' => sub { tiered(mmap(), memcached($far_at)) },
    'tiered-fastmmap' => sub { tiered(fastmmap(), memcached($far_at)) },
    'tiered-near' => sub { tiered(memcached($near_at), memcached($far_at)) },
    'tiered-near-lost' => sub { tiered_near_lost(memcached($near_at), memcached($far_at)) },
);
my ($get, $set) = ($stores{$store} or die "there is no store $store\n")->();
$set->() or die "$store: the value cannot be set\n";

my ($is_get, $is_set) = ($loop ne 'set', $loop ne 'get');
my ($misses, $wrong, $done) = (0, 0, 0);
my $start = time;
while ($done < $iterations) {
    last if $done % 10 == 9 && time - $start > $seconds_max;
    if ($is_set) {
        $set->() or die "$store: a set failed\n";
    }
    if ($is_get) {
        my $found = $get->();
        if (!defined $found) {
            ++$misses;
            $set->();
        } elsif ($found ne $value) {
            ++$wrong;
        }
    }
    ++$done;
}
printf "%d %.6f %d %d %d %d\n", $done, time - $start, $misses, $wrong, $near_hits, $far_gets;
