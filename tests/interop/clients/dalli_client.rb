# Every command of Dalli over the binary protocol; see run_client in larder_test.py for the lines this speaks.

require 'dalli'
require 'logger'

$stdout.sync = true
Dalli.logger = Logger.new($stderr, level: Logger::ERROR)

SIZES = [0, 100, 3 * 1024, 20 * 1024, 100 * 1024, 700 * 1024].freeze
TAIL = "\r\n<tail>".b
RAW = { raw: true }.freeze
ADDRESS = "#{ARGV[-2]}:#{ARGV[-1]}"
OPTIONS = { compress: false, socket_timeout: 60, value_max_bytes: 8 << 20 }.freeze
C = Dalli::Client.new(ADDRESS, OPTIONS)

def value_of(size)
  block = (0..255).map { |i| (i * 31 + size) % 256 }.pack('C*')
  block * (size / 256) + block[0, size % 256]
end

def short(value)
  text = value.inspect
  text.length < 100 ? text : "#{text[0, 50]}...#{text[-50, 50]}"
end

def plain(value)
  value.is_a?(String) ? value.b : value
end

def check(name, got, want)
  if plain(got) == plain(want)
    puts "ok #{name}"
  else
    puts "not ok #{name}: got #{short(got)}, want #{short(want)}"
  end
end

def raises(name, kind, text = '')
  got = yield
  puts "not ok #{name}: got #{short(got)}, want #{kind}"
rescue kind => e
  check(name, e.message.include?(text) ? text : e.message, text)
end

def ask(line)
  puts line
  $stdin.gets.strip
end

def check_ttl(name, key, most, least)
  left = ask("ttl #{key}")
  check("#{name} (ttl of #{left})", left.match?(/\A-?\d+\z/) && left.to_i.between?(least, most), true)
end

def get(key)
  C.get(key, RAW)
end

def unique(key)
  C.get_cas(key)[1]
end

C.set('counted', 'x', 0, RAW)
check('reset_stats', C.reset_stats.length, 1)
check('reset_stats: counted anew', C.stats.values[0]['cmd_set'], '0')

# What is set before it settles.
SIZES.each do |size|
  %w[get get_cas add replace append prepend cas cas! set_cas stale replace_cas delete delete_cas touch gat].each do |use|
    check("set #{use} #{size}", C.set("#{use}:#{size}", value_of(size), 3600, RAW).is_a?(Integer), true)
  end
end
50.times { |i| C.set("many:#{i}", value_of(i), 3600, RAW) }
%w[incr decr get].each { |use| C.set("number:#{use}", '1234567890', 3600, RAW) }
C.set('number:below', '10', 3600, RAW)
C.set('number:wrap', '18446744073709551615', 3600, RAW)
C.set('nonumber', 'ten', 3600, RAW)
%w[set add replace delete].each { |use| C.set("quiet:#{use}", 'old', 3600, RAW) }
[6, 600, 86_400, 0].each { |ttl| C.set("ttl:#{ttl}", 'x' * 50, ttl, RAW) }
short_lived_since = Process.clock_gettime(Process::CLOCK_MONOTONIC)
C.set('too-large', 'old', 0, RAW)
structure = { 'list' => [1, 2, nil], :word => 'x' * 5000 }
check('set of an object', C.set('object', structure, 3600).is_a?(Integer), true)
packed = Dalli::Client.new(ADDRESS, OPTIONS.merge(compress: true))
check('set, compressed', packed.set('compressed', 'a' * 50_000, 3600).is_a?(Integer), true)
old_cas = SIZES.to_h { |size| [size, unique("stale:#{size}")] }
SIZES.each { |size| C.set("stale:#{size}", value_of(size), 3600, RAW) }
ask('settle')

SIZES.each do |size|
  value = value_of(size)
  check("get #{size}", get("get:#{size}"), value)
  got, cas = C.get_cas("get_cas:#{size}")
  check("get_cas #{size}", [got.b, cas.positive?], [value, true])
  check("add #{size}, there", C.add("add:#{size}", 'new', 0, RAW), false)
  check("add #{size}, value", get("add:#{size}"), value)
  check("replace #{size}", C.replace("replace:#{size}", 'new', 60, RAW) ? true : false, true)
  check("replace #{size}, value", get("replace:#{size}"), 'new')
  check("append #{size}", C.append("append:#{size}", TAIL), true)
  check("append #{size}, value", get("append:#{size}"), value + TAIL)
  check("prepend #{size}", C.prepend("prepend:#{size}", TAIL), true)
  check("prepend #{size}, value", get("prepend:#{size}"), TAIL + value)
  check("cas #{size}", C.cas("cas:#{size}", 3600, RAW) { |old| old.b + TAIL } ? true : false, true)
  check("cas #{size}, value", get("cas:#{size}"), value + TAIL)
  check("cas! #{size}", C.cas!("cas!:#{size}", 3600, RAW) { |old| old.b + TAIL } ? true : false, true)
  check("cas! #{size}, value", get("cas!:#{size}"), value + TAIL)
  check("cas #{size}, changed meanwhile", C.cas("cas:#{size}", 3600, RAW) { |_| C.set("cas:#{size}", 'mine', 0, RAW) && 'x' }, false)
  check("cas #{size}, changed meanwhile, value", get("cas:#{size}"), 'mine')
  check("set_cas #{size}, out of date", C.set_cas("stale:#{size}", 'new', old_cas[size], 0, RAW), false)
  check("set_cas #{size}, out of date, value", get("stale:#{size}"), value)
  check("replace_cas #{size}, out of date", C.replace_cas("stale:#{size}", 'new', old_cas[size], 0, RAW), false)
  check("delete_cas #{size}, out of date", C.delete_cas("stale:#{size}", old_cas[size]), false)
  cas = unique("set_cas:#{size}")
  check("set_cas #{size}", C.set_cas("set_cas:#{size}", 'new', cas, 3600, RAW).is_a?(Integer), true)
  check("set_cas #{size}, value", get("set_cas:#{size}"), 'new')
  cas = unique("replace_cas:#{size}")
  check("replace_cas #{size}", C.replace_cas("replace_cas:#{size}", 'new', cas, 3600, RAW).is_a?(Integer), true)
  check("replace_cas #{size}, value", get("replace_cas:#{size}"), 'new')
  cas = unique("delete_cas:#{size}")
  check("delete_cas #{size}", C.delete_cas("delete_cas:#{size}", cas), true)
  check("delete_cas #{size}, value", get("delete_cas:#{size}"), nil)
  check("touch #{size}", C.touch("touch:#{size}", 7200), true)
  check_ttl("touch #{size}, ttl", "touch:#{size}", 7200, 7190)
  check("touch #{size}, value", get("touch:#{size}"), value)
  check("gat #{size}", C.gat("gat:#{size}", 7200), value)
  check_ttl("gat #{size}, ttl", "gat:#{size}", 7200, 7190)
  check("delete #{size}", C.delete("delete:#{size}"), true)
  check("delete #{size}, again", C.delete("delete:#{size}") || false, false)
  check("delete #{size}, value", get("delete:#{size}"), nil)
end
check_ttl('append keeps the ttl', 'append:100', 3600, 3000)
check_ttl('replace sets the ttl', 'replace:100', 60, 50)

check('get, missing', get('no'), nil)
check('get_cas, missing', C.get_cas('no')[0], nil)
check('add, missing', C.add('no:add', 'x', 0, RAW) ? true : false, true)
# Here the client hands out the unique of the answer, and an error has none.
check('replace, missing', C.replace('no', 'x', 0, RAW), 0)
check('append, missing', C.append('no', 'x') ? true : false, false)
check('prepend, missing', C.prepend('no', 'x') ? true : false, false)
check('cas, missing', C.cas('no') { |_| 'x' }, nil)
check('set_cas, missing', C.set_cas('no', 'x', 1, 0, RAW), 0)
check('delete, missing', C.delete('no') || false, false)
check('touch, missing', C.touch('no', 1), nil)
check('gat, missing', C.gat('no', 1), nil)
check('incr, missing', C.incr('no', 1), nil)
check('decr, missing', C.decr('no', 1), nil)
check('nothing was made on the way', get('no'), nil)
check('cas!, missing', C.cas!('no:cas!', 0, RAW) { |_| 'x' }.is_a?(Integer), true)
check('cas!, missing, value', get('no:cas!'), 'x')
check('fetch, missing', C.fetch('no:fetch', 3600) { 'made' }, 'made')
check('fetch, there', C.fetch('no:fetch', 3600) { 'made again' }, 'made')

check('get of a number', get('number:get'), '1234567890')
check('incr', C.incr('number:incr', 10), 1_234_567_900)
check('incr, again', C.incr('number:incr'), 1_234_567_901)
check_ttl('incr keeps the ttl', 'number:incr', 3600, 3000)
check('decr', C.decr('number:decr', 90), 1_234_567_800)
check('decr to fewer digits', C.decr('number:below', 1), 9)
check('decr below 0', C.decr('number:below', 100), 0)
check('incr past 2^64', C.incr('number:wrap', 2), 1)
check('incr with a default, missing', C.incr('no:incr', 1, 600, 77), 77)
check('incr with a default, there', C.incr('no:incr', 1, 600, 77), 78)
check_ttl('incr with a default, ttl', 'no:incr', 600, 590)
check('decr with a default, missing', C.decr('no:decr', 1, 600, 5), 5)
check('decr with a default, there', C.decr('no:decr', 1, 600, 5), 4)
raises('incr of no number', Dalli::DalliError, 'non-numeric value') { C.incr('nonumber', 1) }
check('incr of no number, value', get('nonumber'), 'ten')

C.multi do
  C.set('quiet:set', 'new', 3600, RAW)
  C.add('quiet:add', 'new', 3600, RAW)
  C.add('quiet:add-new', 'new', 3600, RAW)
  C.replace('quiet:replace', 'new', 3600, RAW)
  C.replace('quiet:replace-no', 'new', 3600, RAW)
  C.delete('quiet:delete')
  C.delete('quiet:delete-no')
  2000.times { |i| C.set("quiet:burst:#{i}", "value #{i}", 3600, RAW) }
end
check('set, quiet', get('quiet:set'), 'new')
check('add, quiet', get('quiet:add'), 'old')
check('add, quiet, missing', get('quiet:add-new'), 'new')
check('replace, quiet', get('quiet:replace'), 'new')
check('replace, quiet, missing', get('quiet:replace-no'), nil)
check('delete, quiet', get('quiet:delete'), nil)
check('2000 quiet sets', C.get_multi((0...2000).map { |i| "quiet:burst:#{i}" }).length, 2000)

want = (0...50).to_h { |i| ["many:#{i}", value_of(i)] }
C.set('fresh:1', 'fresh one', 0, RAW)
C.set('fresh:2', value_of(5000), 0, RAW)
want['fresh:1'] = 'fresh one'.b
want['fresh:2'] = value_of(5000)
[0, 102_400].each { |size| want["get:#{size}"] = value_of(size) }
mixed = want.keys.each_slice(5).flat_map { |some| some + ["no:#{some[0]}"] }
check('get_multi of fresh, settled and missing keys', C.get_multi(mixed).transform_values(&:b), want)
check('get_multi_cas', C.get_multi_cas(*mixed).transform_values { |v, cas| cas.positive? && v.b }, want)
check('get_multi, none there', C.get_multi('no:1', 'no:2'), {})
check('an object comes back', C.get('object'), structure)
check('compressed comes back', packed.get('compressed'), 'a' * 50_000)

check_ttl('ttl of 600', 'ttl:600', 600, 480)
check_ttl('ttl of a day', 'ttl:86400', 86_400, 86_280)
check_ttl('ttl of 0', 'ttl:0', -1, -1)
raises('set, too large', Dalli::DalliError, 'Value too large') { C.set('too-large', 'x' * (2 << 20), 0, RAW) }
check('set, too large, drops what was there', get('too-large'), nil)
sleep [0, 7.1 - (Process.clock_gettime(Process::CLOCK_MONOTONIC) - short_lived_since)].max
check('gone after its ttl of 6', get('ttl:6'), nil)
check('touch after its ttl', C.touch('ttl:6', 10), nil)
check('add after its ttl', C.add('ttl:6', 'x', 0, RAW) ? true : false, true)

check('alive!', C.alive! ? true : false, true)
check('version', C.version.values[0].match?(/\A1\.6\.\d+\z/), true)
stats = C.stats.values[0]
check('stats', [stats['version'].start_with?('1.6.'), stats['cmd_set'].to_i > 100], [true, true])
check('stats settings', C.stats(:settings).values[0]['evictions'], 'on')
check('stats items', C.stats(:items).values[0].class, Hash)
check('stats slabs', C.stats(:slabs).values[0].class, Hash)
check('with', C.with { |same| same.get('ttl:600', RAW) }, 'x' * 50)

C.set('flush:1', 'x', 60, RAW)
C.set('flush:large', value_of(102_400), 60, RAW)
ask('settle')
C.set('flush:fresh', 'x', 60, RAW)
check('before flush', get('flush:1'), 'x')
check('flush', C.flush.all? { |answer| answer }, true)
check('flush: all are gone', C.get_multi('flush:1', 'flush:large', 'flush:fresh'), {})
check('append after flush', C.append('flush:1', 'x') ? true : false, false)
check('set after flush', [C.set('flush:1', 'y', 60, RAW).is_a?(Integer), get('flush:1')], [true, 'y'])
check('flush_all', C.flush_all.all? { |answer| answer }, true)
check('flush_all: gone', get('flush:1'), nil)
C.close
check('works again after close', get('flush:1'), nil)
