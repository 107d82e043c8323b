"""The scripts that run inside Redis, each as a whole: times are microseconds of its clock.

The keys of a scope: `requests` (member: lease, score: time), `tokens` (the same) with the `amounts`
of each lease and their `total`, the leases whose amount is an `estimate`, `slots` (score: when one
is free again, whatever happens), and the `lines` of the processes that wait (score: ticket) with the
time when each was last `seen`; a call that does not wait has none.
"""

from __future__ import annotations

KEYS = ("requests", "tokens", "amounts", "estimates", "slots", "lines", "seen")

_NOW = """
local requests, tokens, amounts, estimates, slots, lines, seen = unpack(KEYS)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
"""

TAKE = (
    _NOW
    + """
local id, line = ARGV[1], ARGV[2]
local span, lease, patience = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local wanted, slot, ahead = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local max_requests, max_tokens, max_slots = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

if redis.call('SISMEMBER', estimates, id) == 1 then
  return {1, 0, 0}
end
redis.call('ZREMRANGEBYSCORE', requests, '-inf', now - span)
redis.call('ZREMRANGEBYSCORE', slots, '-inf', now)
for _, old in ipairs(redis.call('ZRANGEBYSCORE', tokens, '-inf', now - span)) do
  redis.call('HINCRBY', amounts, 'total', 0 - (redis.call('HGET', amounts, old) or 0))
  redis.call('HDEL', amounts, old)
  redis.call('SREM', estimates, old)
  redis.call('ZREM', tokens, old)
end

local wait, at_least = 0, 0
if max_requests >= 0 then
  local count = redis.call('ZCARD', requests)
  local index = count + ahead % max_requests - max_requests
  local windows = math.floor(ahead / max_requests)
  local since = now
  if index >= 0 then
    since = tonumber(redis.call('ZRANGE', requests, index, index, 'WITHSCORES')[2])
    windows = windows + 1
  end
  wait = math.max(0, since + windows * span - now)
  at_least = wait
end
if max_tokens >= 0 then
  local excess = (tonumber(redis.call('HGET', amounts, 'total')) or 0) + wanted - max_tokens
  if excess > 0 then
    local open = 0
    for _, other in ipairs(redis.call('SMEMBERS', estimates)) do
      open = open + (tonumber(redis.call('HGET', amounts, other)) or 0)
    end
    local freed, settled = 0, 0
    local entries = redis.call('ZRANGE', tokens, 0, -1, 'WITHSCORES')
    for n = 1, #entries, 2 do
      local amount = tonumber(redis.call('HGET', amounts, entries[n])) or 0
      local leaves = tonumber(entries[n + 1]) + span - now
      freed = freed + amount
      if settled < excess - open and redis.call('SISMEMBER', estimates, entries[n]) == 0 then
        settled = settled + amount
        at_least = math.max(at_least, leaves)
      end
      if freed >= excess then
        wait = math.max(wait, leaves)
        break
      end
    end
  end
end
local full = slot > 0 and max_slots >= 0 and redis.call('ZCARD', slots) >= max_slots
if ahead > 0 then
  return {0, full and -1 or wait, at_least}
end

if slot > 0 then
  local first = redis.call('ZRANGE', lines, 0, 0)[1]
  while first and first ~= line and now - (tonumber(redis.call('HGET', seen, first)) or 0) > patience do
    redis.call('ZREM', lines, first)
    redis.call('HDEL', seen, first)
    first = redis.call('ZRANGE', lines, 0, 0)[1]
  end
  if line == '' and (wait > 0 or full or first) then
    return {0, full and -1 or wait, at_least}
  end
  if wait > 0 or full or (first and first ~= line) then
    redis.call('ZADD', lines, 'NX', now, line)
    redis.call('HSET', seen, line, now)
    redis.call('PEXPIRE', lines, 60000)
    redis.call('PEXPIRE', seen, 60000)
    return {0, full and -1 or wait, at_least}
  end
  redis.call('ZREM', lines, line)
  redis.call('HDEL', seen, line)
elseif wait > 0 then
  return {0, full and -1 or wait, at_least}
end

redis.call('ZADD', requests, now, id)
redis.call('ZADD', tokens, now, id)
redis.call('HSET', amounts, id, wanted)
redis.call('HINCRBY', amounts, 'total', wanted)
redis.call('SADD', estimates, id)
for _, key in ipairs({requests, tokens, amounts, estimates}) do
  redis.call('PEXPIRE', key, math.ceil(span / 1000) + 1000)
end
if slot > 0 then
  redis.call('ZADD', slots, now + lease, id)
  redis.call('PEXPIRE', slots, math.ceil(lease / 1000) + 1000)
end
return {1, 0, 0}
"""
)
"""Takes all of a demand or nothing. Says then how long to wait, 0 for another's turn, -1 if that depends
on slots, and how long at least. Asked again for the same lease, it takes nothing more."""

SETTLE = (
    _NOW
    + """
local id, sent, used = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREM', slots, id)
if redis.call('SREM', estimates, id) == 0 then
  return 0
end
if sent == 0 then
  redis.call('ZREM', requests, id)
end
for n = 2, sent do
  redis.call('ZADD', requests, now, id .. ':' .. n)
end
local taken = redis.call('HGET', amounts, id)
if taken then
  redis.call('HSET', amounts, id, used)
  redis.call('HINCRBY', amounts, 'total', used - taken)
end
return 1
"""
)
"""Frees the slot of a lease, and corrects its requests and tokens, once."""

RENEWAL = (
    _NOW
    + """
local lease = tonumber(ARGV[1])
for n = 2, #ARGV do
  redis.call('ZADD', slots, 'XX', now + lease, ARGV[n])
end
redis.call('PEXPIRE', slots, math.ceil(lease / 1000) + 1000)
return 1
"""
)
"""Keeps the slots of leases that are still in use."""
