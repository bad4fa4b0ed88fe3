import { entryFunctions, prelude, type Script } from './shared.ts'

/**
 * Applies a change. Replies: `erased`, `revision`, `gap`, `missing` and `taken` for rejected changes,
 * `repeated` with the messages of a change that was applied before, `stored` with the row and the position of the
 * first message.
 */
export const commitScript: Script = {
  name: 'commit',
  source: `${prelude}${entryFunctions}
local id, change, token, epoch, base = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local at, expires, ttl, fromSequence, fromOffset, about = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local replaces, appends, puts, drops = tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])
local maxChanges, neverExpires = tonumber(ARGV[16]), ARGV[17]
local replaceAt = 18
local appendAt = replaceAt + 5 * replaces
local putAt = appendAt + 4 * appends
local dropAt = putAt + 2 * puts

local exists = readRow()
if (exists and format(row.epoch) or unknownEpoch(id)) ~= epoch then
  return { 'erased', call('HGET', metaKey, 'base') or '' }
end

local function listMessages(first, last)
  return call('ZRANGEBYSCORE', messagesKey, first, last)
end
local applied = exists and change ~= '' and call('HGET', changesKey, change)
if applied then
  local first, last = string.match(applied, '^(%S+) (%S+)')
  return { 'repeated', listMessages(first, last) }
end
-- The last change may be sent again after its reply was lost.
local lastToken = exists and call('HGET', rowKey, 'token')
if lastToken then
  local sent, first, last = string.match(lastToken, '^(%S+) (%S+) (%S+)')
  if sent == token then return { 'repeated', listMessages(first, last) } end
end
if base ~= '' and base ~= (exists and format(row.revision) or '0') then
  return { 'revision', exists and format(row.revision) or '0' }
end
local filled
if exists and fromSequence ~= '' and tonumber(fromSequence) <= row.last then
  local sequence = tonumber(fromSequence)
  if appends ~= 1 or not findGap(sequence) then return { 'gap', format(row.last), row.gaps } end
  filled = sequence
end

local freed, replaced = {}, {}
for n = 0, drops - 1 do freed[ARGV[dropAt + 2 * n + 1]] = true end
for n = 0, replaces - 1 do
  local sequence = ARGV[replaceAt + 5 * n]
  if base == '' or sequence == '' or replaced[sequence] or not messageAt(sequence) then
    return { 'missing', format(n) }
  end
  freed[sequence], replaced[sequence] = true, true
end
local given = {}
local function isTaken(external)
  if external == '' then return false end
  local owner = call('HGET', externalKey, external)
  if given[external] or (owner and not freed[owner]) then return true end
  given[external] = true
  return false
end
for n = 0, replaces - 1 do
  local external = ARGV[replaceAt + 5 * n + 3]
  if isTaken(external) then return { 'taken', external } end
end
for n = 0, appends - 1 do
  local external = ARGV[appendAt + 4 * n + 2]
  if isTaken(external) then return { 'taken', external } end
end

if not exists then
  row = {
    epoch = tonumber(epoch), revision = 0, stamp = 0, removals = 0, started = tonumber(at), touched = 0, expires = 0,
    messages = 0, last = 0, weight = 0, user = -1, gaps = '', derived = 0, gapRanges = {},
  }
  -- The first write is one that Redis refuses without memory; all later ones then succeed.
  call('HSET', rowKey, 'epoch', epoch)
  call('ZADD', sessionsKey, 0, id)
end

for n = 0, replaces - 1 do forgetExternalId(tonumber(ARGV[replaceAt + 5 * n])) end
for n = 0, replaces - 1 do
  local argument = replaceAt + 5 * n
  local sequence = tonumber(ARGV[argument])
  local _, offset, weight = parseMessage(messageAt(sequence))
  call('ZREMRANGEBYSCORE', messagesKey, sequence, sequence)
  storeMessage(sequence, offset, ARGV[argument + 2], ARGV[argument + 1], ARGV[argument + 3], ARGV[argument + 4])
  row.weight = row.weight + math.max(0, tonumber(ARGV[argument + 2]) - weight)
  deleteVector(id, 'm' .. format(sequence))
end
if replaces > 0 then
  row.removals = row.removals + 1
  recordRemoval()
  row.user = findUserBefore(math.huge)
end

local first, offset
if filled then
  local previous = call('ZREVRANGEBYSCORE', messagesKey, '(' .. format(filled), '-inf', 'LIMIT', 0, 1)[1]
  local _, previousOffset, previousWeight = 0, 0, 0
  if previous then _, previousOffset, previousWeight = parseMessage(previous) end
  first, offset = filled, previousOffset + previousWeight
  local following = call('ZRANGEBYSCORE', messagesKey, '(' .. format(filled), '+inf', 'LIMIT', 0, 1)[1]
  -- Indexes and caches read only what follows the last message they know; a changed lineage makes them start again.
  if following then
    local _, followingOffset = parseMessage(following)
    offset = math.min(offset, followingOffset)
    row.removals = row.removals + 1
    recordRemoval()
  end
  storeMessage(filled, offset, ARGV[appendAt + 1], ARGV[appendAt], ARGV[appendAt + 2], ARGV[appendAt + 3])
  removeFromGaps(filled)
  if ARGV[appendAt] == '1' and filled > row.user then row.user = filled end
  row.weight = row.weight + tonumber(ARGV[appendAt + 1])
  row.messages = row.messages + 1
else
  if fromSequence ~= '' then
    addGap(row.last + 1, tonumber(fromSequence) - 1)
    row.last = tonumber(fromSequence) - 1
    if fromOffset ~= '' then row.weight = tonumber(fromOffset) end
  end
  first, offset = row.last + 1, row.weight
  for n = 0, appends - 1 do
    local argument = appendAt + 4 * n
    row.last = row.last + 1
    storeMessage(row.last, row.weight, ARGV[argument + 1], ARGV[argument], ARGV[argument + 2], ARGV[argument + 3])
    row.weight = row.weight + tonumber(ARGV[argument + 1])
    row.messages = row.messages + 1
    if ARGV[argument] == '1' then row.user = row.last end
  end
end
local last = format(first + appends - 1)

for n = 0, puts - 1 do
  local entry, body = ARGV[putAt + 2 * n], ARGV[putAt + 2 * n + 1]
  local previous = call('HGET', derivedKey, entry)
  local place = previous and string.match(previous, '^(%d+):') or format(call('HINCRBY', rowKey, 'place', 1))
  call('HSET', derivedKey, entry, place .. ':' .. body)
  row.derived = row.derived + 1
  deleteVector(id, entry)
end
if about == '-' then call('HDEL', rowKey, 'about')
elseif about ~= '' then call('HSET', rowKey, 'about', string.sub(about, 2)) end
removeEntries(id, dropAt, drops)

row.touched, row.expires = tonumber(at), tonumber(expires)
writeRow()
call('HSET', rowKey, 'token', token .. ' ' .. format(first) .. ' ' .. last)
if change ~= '' then
  call('HSET', changesKey, change, format(first) .. ' ' .. last .. ' ' .. format(row.revision))
  if row.revision % 256 == 0 and call('HLEN', changesKey) > maxChanges then
    local all = call('HGETALL', changesKey)
    for n = 1, #all, 2 do
      local revision = tonumber(string.match(all[n + 1], '(%S+)$'))
      if revision <= row.revision - maxChanges then call('HDEL', changesKey, all[n]) end
    end
  end
end
call('ZADD', stampsKey, format(row.stamp), id)
if expires == neverExpires then call('ZREM', expiryKey, id) else call('ZADD', expiryKey, expires, id) end
keepSession(ttl)
return { 'stored', listRow(), format(first), format(offset) }
`,
}

/** Erases a session, its expired state, its records, or some entries. Replies with the erased ids and the row. */
export const eraseScript: Script = {
  name: 'erase',
  source: `${prelude}${entryFunctions}
local id, mode, expiredBy, scopeTtl, channel, payload = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local maxEpochs, entries = tonumber(ARGV[7]), tonumber(ARGV[8])

local function announce() redis.pcall('PUBLISH', channel, payload) end

local exists = readRow()
if mode == 'records' then
  call('DEL', recordsKey)
  if exists then call('HDEL', rowKey, 'records') end
  return { {} }
end
if mode == 'entries' then
  if not exists then return { {} } end
  -- A write that Redis accepts without memory comes first; all later ones then succeed.
  call('HDEL', rowKey, 'none')
  local removed = removeEntries(id, 9, entries)
  -- The revision grows even if nothing was removed: a writer that read the session may hold the erased text.
  writeRow()
  call('ZADD', stampsKey, format(row.stamp), id)
  announce()
  return { removed }
end
if mode == 'expired' and (not exists or row.expires > tonumber(expiredBy)) then return { {} } end

local erased = {}
for _, member in ipairs(call('ZRANGE', messagesKey, 0, -1)) do
  erased[#erased + 1] = 'm' .. format((parseMessage(member)))
end
local derived, places = {}, {}
local all = call('HGETALL', derivedKey)
for n = 1, #all, 2 do
  derived[#derived + 1] = all[n]
  places[all[n]] = tonumber(string.match(all[n + 1], '^(%d+):'))
end
table.sort(derived, function(a, b) return places[a] < places[b] end)
for _, entry in ipairs(derived) do erased[#erased + 1] = entry end

call('DEL', rowKey, messagesKey, derivedKey, changesKey, externalKey, recordsKey)
if call('EXISTS', vectorsKey) == 1 then
  for _, entry in ipairs(erased) do deleteVector(id, entry) end
end
call('ZREM', sessionsKey, id)
call('ZREM', stampsKey, id)
call('ZREM', expiryKey, id)
if call('EXISTS', metaKey) == 0 then createScope(scopeTtl) end
local epoch = (exists and row.epoch or tonumber(unknownEpoch(id))) + 1
call('HSET', epochsKey, id, format(epoch))
local top = math.max(epoch, tonumber(call('HGET', metaKey, 'top') or '0'))
call('HSET', metaKey, 'top', format(top))
-- Beyond a number of erased sessions, all unknown ones get the highest epoch; their writers read again.
if call('HLEN', epochsKey) > maxEpochs then
  call('DEL', epochsKey)
  call('HSET', metaKey, 'floor', format(top))
end
call('HINCRBY', metaKey, 'stamp', 1)
recordRemoval()
keepScope(scopeTtl)
announce()
return { erased }
`,
}

/** Appends an auxiliary record; replies 0 for an unknown session. */
export const recordScript: Script = {
  name: 'record',
  source: `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local number = redis.call('HINCRBY', KEYS[1], 'records', 1)
redis.call('ZADD', KEYS[2], number, string.format('%.17g', number) .. ':' .. ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.17g', number - tonumber(ARGV[2])))
local left = redis.call('PTTL', KEYS[1])
if left >= 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
`,
}

/** Removes the id of a session that Redis has dropped by itself. */
export const removeIdScript: Script = {
  name: 'remove-id',
  source: `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for n = 2, #KEYS do redis.call('ZREM', KEYS[n], ARGV[1]) end
return 1
`,
}
