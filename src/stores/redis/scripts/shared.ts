/** Redis drops a session by itself this long after its end, if no server has ended it, and an unused scope. */
export const backstopMs = 86_400_000

/** A Lua script and its name for error messages. */
export type Script = { readonly name: string; readonly source: string }

/**
 * Names of the keys, in the order of `RedisKeys.forRead` and `RedisKeys.forWrite`, and functions that several scripts
 * use. Numbers are stored as text with all their digits; cjson would round them to 14.
 */
export const prelude = `
local metaKey, epochsKey, rowKey, messagesKey, derivedKey = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local changesKey, externalKey, recordsKey = KEYS[6], KEYS[7], KEYS[8]
local vectorsKey, positionsKey, sessionsKey, stampsKey, expiryKey = KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local call = redis.call

local function format(number) return string.format('%.17g', number) end

-- The first epoch of a scope is the time of its creation in microseconds: after a restart without data it differs from
-- all epochs that writers have read before.
local function createScope(ttl)
  local time = call('TIME')
  local base = time[1] .. string.format('%06d', tonumber(time[2]))
  call('HSET', metaKey, 'base', base, 'floor', base, 'top', base)
  call('PEXPIRE', metaKey, ttl)
  return base
end

local function unknownEpoch(id)
  return call('HGET', epochsKey, id) or call('HGET', metaKey, 'floor') or ''
end

-- A message is stored as SEQUENCE:OFFSET:WEIGHT:IS_VISIBLE_USER:JSON.
local function parseMessage(member)
  local sequence, offset, weight, user = string.match(member, '^([^:]*):([^:]*):([^:]*):([^:]*):')
  return tonumber(sequence), tonumber(offset), tonumber(weight), user == '1'
end

local function messageAt(sequence)
  local found = call('ZRANGEBYSCORE', messagesKey, sequence, sequence)
  return found[1]
end

-- Keys of the scope live as long as its longest-lived session.
local function keepScope(ttl)
  local left = call('PTTL', metaKey)
  local keys = { metaKey, epochsKey, vectorsKey, positionsKey, sessionsKey, stampsKey, expiryKey }
  for _, key in ipairs(keys) do
    if ttl == '' or left == -1 then call('PERSIST', key)
    else call('PEXPIRE', key, math.max(left, tonumber(ttl))) end
  end
end

local function recordRemoval() call('HINCRBY', metaKey, 'removals', 1) end

local function deleteVector(id, entry)
  local name = id .. ' ' .. entry
  call('HDEL', vectorsKey, name)
  call('ZREM', positionsKey, name)
end
`

/** Columns of a session's row, in the order in which scripts return them. */
const rowColumns = [
  'epoch',
  'revision',
  'stamp',
  'removals',
  'started',
  'touched',
  'expires',
  'messages',
  'last',
  'weight',
  'user',
  'gaps',
  'derived',
] as const

/** The columns as arguments of a script. */
export const columns = rowColumns.map((name) => `'${name}'`).join(', ')

/** Functions that change the entries of a session whose row is in `row`. */
export const entryFunctions = `
local row = {}
local function readRow()
  local values = call('HMGET', rowKey, ${columns})
  if not values[1] then return false end
  for at, name in ipairs({ ${columns} }) do row[name] = name == 'gaps' and values[at] or tonumber(values[at]) end
  row.gapRanges = {}
  for from, to in string.gmatch(row.gaps, '(%d+)-(%d+)') do
    row.gapRanges[#row.gapRanges + 1] = { tonumber(from), tonumber(to) }
  end
  return true
end

local function addGap(first, last)
  if last < first then return end
  local from, to, others = first, last, {}
  for _, gap in ipairs(row.gapRanges) do
    if gap[2] < first - 1 or gap[1] > last + 1 then others[#others + 1] = gap
    else from, to = math.min(from, gap[1]), math.max(to, gap[2]) end
  end
  others[#others + 1] = { from, to }
  table.sort(others, function(a, b) return a[1] < b[1] end)
  row.gapRanges = others
end

local function findGap(sequence)
  for at, gap in ipairs(row.gapRanges) do
    if gap[1] <= sequence and sequence <= gap[2] then return at end
  end
end

local function removeFromGaps(sequence)
  local at = findGap(sequence)
  local gap = table.remove(row.gapRanges, at)
  if sequence < gap[2] then table.insert(row.gapRanges, at, { sequence + 1, gap[2] }) end
  if gap[1] < sequence then table.insert(row.gapRanges, at, { gap[1], sequence - 1 }) end
end

local function writeRow()
  local texts = {}
  for _, gap in ipairs(row.gapRanges) do texts[#texts + 1] = format(gap[1]) .. '-' .. format(gap[2]) end
  row.gaps = table.concat(texts, ',')
  row.revision = row.revision + 1
  row.stamp = call('HINCRBY', metaKey, 'stamp', 1)
  local values = {}
  for _, name in ipairs({ ${columns} }) do
    values[#values + 1] = name
    values[#values + 1] = name == 'gaps' and row.gaps or format(row[name])
  end
  call('HSET', rowKey, unpack(values))
end

local function listRow()
  local values = {}
  for _, name in ipairs({ ${columns} }) do
    values[#values + 1] = name == 'gaps' and row.gaps or format(row[name])
  end
  return values
end

-- Finds the newest user message with visible text before a sequence number.
local function findUserBefore(sequence)
  local before = '(' .. format(sequence)
  while true do
    local page = call('ZREVRANGEBYSCORE', messagesKey, before, '-inf', 'LIMIT', 0, 16)
    for _, member in ipairs(page) do
      local found, _, _, isUser = parseMessage(member)
      if isUser then return found end
      before = '(' .. format(found)
    end
    if #page < 16 then return -1 end
  end
end

local function storeMessage(sequence, offset, weight, user, external, body)
  call('ZADD', messagesKey, format(sequence), table.concat({ format(sequence), format(offset), weight, user, body }, ':'))
  if external ~= '' then
    call('HSET', externalKey, external, format(sequence), 's' .. format(sequence), external)
  end
end

local function forgetExternalId(sequence)
  local external = call('HGET', externalKey, 's' .. format(sequence))
  if not external then return end
  call('HDEL', externalKey, 's' .. format(sequence))
  if call('HGET', externalKey, external) == format(sequence) then call('HDEL', externalKey, external) end
end

-- Removes entries, given as pairs of id and sequence number, and returns the ids of those that existed.
local function removeEntries(id, from, count)
  local removed = {}
  for at = from, from + 2 * (count - 1), 2 do
    local entry, sequence = ARGV[at], tonumber(ARGV[at + 1])
    local existed = false
    if call('HDEL', derivedKey, entry) == 1 then
      existed = true
      row.derived = row.derived + 1
      if entry == 'about' then call('HDEL', rowKey, 'about') end
    elseif sequence and call('ZREMRANGEBYSCORE', messagesKey, sequence, sequence) == 1 then
      existed = true
      row.messages = row.messages - 1
      addGap(sequence, sequence)
      forgetExternalId(sequence)
      if row.user == sequence then row.user = findUserBefore(sequence) end
    end
    if existed then
      removed[#removed + 1] = entry
      deleteVector(id, entry)
    end
  end
  if #removed > 0 then
    row.removals = row.removals + 1
    recordRemoval()
  end
  return removed
end

local function keepSession(ttl)
  for _, key in ipairs({ rowKey, messagesKey, derivedKey, changesKey, externalKey, recordsKey }) do
    if ttl == '' then call('PERSIST', key) else call('PEXPIRE', key, ttl) end
  end
  keepScope(ttl)
end
`
