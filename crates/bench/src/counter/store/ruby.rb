# One connection to a counter, with a library of Ruby that is named. The first line of the input is the server's address;
# it may hold a password, so it is no argument. Each further line is a word, and gets a line in answer: a number, a text,
# or `!` and why there is none.
NAME, INCREMENT, READ, RESET, SCHEMA = ARGV
KEY = 'larder-bench-counter'

def library(name, package)
  require name
rescue LoadError
  puts "! Ruby has no #{name} (Debian: #{package})"
  exit
end

# Dalli, and Rack::Attack's counter in it.
class WithDalli
  def initialize(address)
    library 'dalli', 'ruby-dalli'
    require 'logger'
    Dalli.logger = Logger.new($stderr, level: Logger::WARN)
    @client = Dalli::Client.new(address.delete_prefix('unix:'))
  end

  def version = "Dalli #{Dalli::VERSION}, Ruby #{RUBY_VERSION}"
  # False: it was there already when memcached was about to make it.
  def count = @client.incr(KEY, 1, nil, 1) || @client.incr(KEY, 1, nil, 1)
  def read = @client.get(KEY).to_i
  def reset = @client.delete(KEY)
end

class WithRackAttack
  # One window for all of a run.
  PERIOD = 1_000_000_000

  def initialize(address)
    library 'dalli', 'ruby-dalli'
    library 'rack/attack', 'ruby-rack-attack'
    require 'logger'
    require 'rack/attack/version'
    Dalli.logger = Logger.new($stderr, level: Logger::WARN)
    Rack::Attack.cache.store = Dalli::Client.new(address.delete_prefix('unix:'))
    @cache = Rack::Attack.cache
  end

  def version = "Rack::Attack #{Rack::Attack::VERSION}, Dalli #{Dalli::VERSION}, Ruby #{RUBY_VERSION}"
  def count = @cache.count(KEY, PERIOD)
  def read = @cache.read("#{Time.now.to_i / PERIOD}:#{KEY}").to_i
  def reset = @cache.reset_count(KEY, PERIOD)
end

class WithRedis
  def initialize(address)
    library 'redis', 'ruby-redis'
    address = "redis://#{address}" unless address.include?('://')
    # An increment must not be sent twice.
    @client = Redis.new(url: address, reconnect_attempts: 0)
  end

  def version = "redis #{@client.info['redis_version']}, redis-rb #{Redis::VERSION}, Ruby #{RUBY_VERSION}"
  def count = @client.incr(KEY)
  def read = @client.get(KEY).to_i
  def reset = @client.del(KEY)
end

class WithMysql2
  def initialize(address)
    library 'mysql2', 'ruby-mysql2'
    require 'uri'
    # The scheme may be mariadb, which URI does not know.
    url = URI.parse(address.sub(/\A\w+:/, 'mysql:'))
    plain = ->(text) { text && URI.decode_www_form_component(text) }
    @client = Mysql2::Client.new(
      host: url.host, port: url.port || 3306, username: plain.(url.user), password: plain.(url.password)
    )
    @statements = INCREMENT.split('; ')
  end

  def version = "#{@client.server_info[:version]}, mysql2 #{Mysql2::VERSION}, Ruby #{RUBY_VERSION}"
  def prepare = SCHEMA.split('; ').each { |sql| @client.query(sql) }
  def read = value(@client.query(READ)).to_i
  def reset = @client.query(RESET)

  def count
    if @statements.size == 1
      @prepared ||= @client.prepare(INCREMENT)
      @prepared.execute
      return @prepared.last_id
    end
    @statements.map { |sql| value(@client.query(sql)) }.compact.first
  end

  def value(result) = result&.first&.values&.first
end

class WithPg
  def initialize(address)
    library 'pg', 'ruby-pg'
    @client = PG.connect(address)
    @client.set_notice_processor { |_| }
  end

  def version = "PostgreSQL #{@client.parameter_status('server_version')}, pg #{PG::VERSION}, Ruby #{RUBY_VERSION}"
  def prepare = @client.exec(SCHEMA)
  def reset = @client.exec(RESET)

  def read
    found = @client.exec(READ)
    found.ntuples.zero? ? 0 : found.getvalue(0, 0)
  end

  def count
    @is_prepared ||= @client.prepare('increment', INCREMENT)
    @client.exec_prepared('increment').getvalue(0, 0)
  end
end

$stdout.sync = true
KINDS = {
  'rack-attack' => WithRackAttack, 'ruby-dalli' => WithDalli, 'ruby-redis' => WithRedis, 'ruby-mysql2' => WithMysql2,
  'ruby-pg' => WithPg
}.freeze

def line(error) = "! #{error.message.split.join(' ')}"

begin
  client = KINDS.fetch(NAME).new($stdin.gets.chomp)
rescue StandardError => e
  puts line(e)
  exit
end
$stdin.each_line do |word|
  case word.chomp
  when 'count' then puts client.count
  when 'read' then puts client.read
  when 'version' then puts client.version
  when 'reset', 'prepare'
    client.public_send(word.chomp)
    puts 0
  else abort "no word #{word}"
  end
rescue StandardError => e
  puts line(e)
end
