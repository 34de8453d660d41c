# A Sinatra application behind Rack::Attack: what the suite `rack_attack` starts several processes of. STORE names where the
# counters are, SERVER their address, LIMIT how many requests of an address pass in PERIOD seconds.
require 'dalli'
require 'sinatra/base'
require 'rack/attack'
require 'active_support'
require 'active_support/cache'

Dalli.logger.level = Logger::WARN

STORES = {
  'dalli' => -> { Dalli::Client.new(ENV.fetch('SERVER')) },
  'mem_cache_store' => -> { ActiveSupport::Cache::MemCacheStore.new(ENV.fetch('SERVER')) },
  'memory_store' => -> { ActiveSupport::Cache::MemoryStore.new }
}.freeze

Rack::Attack.cache.store = STORES.fetch(ENV.fetch('STORE')).call
limit = Integer(ENV.fetch('LIMIT'))
period = Integer(ENV.fetch('PERIOD'))
Rack::Attack.throttle('requests/ip', limit: limit, period: period, &:ip)

class Application < Sinatra::Base
  get('/') { 'welcome' }
end

use Rack::Attack
run Application
