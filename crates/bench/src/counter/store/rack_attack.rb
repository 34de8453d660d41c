# Counts as Rack::Attack does for a request of a throttle, in the memcached server that is named, with Dalli. It reads a word a
# line, and writes a line for each: `count`, `read` or `reset`.
require 'dalli'
require 'logger'
require 'rack/attack'
require 'rack/attack/version'

Dalli.logger = Logger.new($stderr, level: Logger::WARN)
Rack::Attack.cache.store = Dalli::Client.new(ARGV.fetch(0))

NAME = 'larder-bench-counter'
# One window for all of a run.
PERIOD = 1_000_000_000
CACHE = Rack::Attack.cache

$stdout.sync = true
$stdin.each_line do |word|
  case word.chomp
  when 'count' then puts CACHE.count(NAME, PERIOD)
  when 'read' then puts CACHE.read("#{Time.now.to_i / PERIOD}:#{NAME}").to_i
  when 'reset'
    CACHE.reset_count(NAME, PERIOD)
    puts 0
  when 'version' then puts "Rack::Attack #{Rack::Attack::VERSION}, Dalli #{Dalli::VERSION}, Ruby #{RUBY_VERSION}"
  else abort "no word #{word}"
  end
end
