import { columns, prelude, type Script } from './shared.ts'

/**
 * Reads a session. The caller sends the state it knows and gets only what is newer; replies are
 * `[base, epoch, state, …]` with the state 0 for an unknown session, 1 for an unchanged one, 2 for newer messages and 3
 * for a session read from scratch.
 */
export const readScript: Script = {
  name: 'read',
  source: `${prelude}
local id, knownEpoch, knownRevision, knownRemovals = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local knownMessage, knownDerived, hasMessages, wanted = ARGV[5], ARGV[6], ARGV[7] == '1', tonumber(ARGV[8])
local scopeTtl, maxMessages, maxBytes = ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11])

local base = call('HGET', metaKey, 'base') or createScope(scopeTtl)
local row = call('HMGET', rowKey, ${columns})
if not row[1] then return { base, unknownEpoch(id), 0 } end
local isSameLife = row[1] == knownEpoch
local isEnough = hasMessages or wanted == 0
if isSameLife and row[2] == knownRevision and isEnough then return { base, row[1], 1 } end

local messages, first, user = {}, '', ''
local isContinuation = isSameLife and row[4] == knownRemovals and hasMessages
if isContinuation then
  messages = call('ZRANGEBYSCORE', messagesKey, '(' .. knownMessage, '+inf', 'LIMIT', 0, maxMessages + 1)
  isContinuation = #messages <= maxMessages
end
if not isContinuation then
  local bytes, found = 0, {}
  while wanted > 0 and #found < maxMessages and (#found < wanted or bytes < maxBytes) do
    local count = math.min(64, maxMessages - #found)
    local page = call('ZREVRANGE', messagesKey, #found, #found + count - 1)
    for _, member in ipairs(page) do
      bytes = bytes + #member
      found[#found + 1] = member
    end
    if #page < count then break end
  end
  messages = {}
  for at = #found, 1, -1 do messages[#messages + 1] = found[at] end
  if #messages < tonumber(row[8]) then
    first = call('ZRANGE', messagesKey, 0, 0)[1] or ''
    local oldest = messages[1] and parseMessage(messages[1]) or math.huge
    if row[11] ~= '-1' and tonumber(row[11]) < oldest then user = messageAt(row[11]) or '' end
  end
end
local derived = {}
local hasDerived = not (isSameLife and row[13] == knownDerived)
if hasDerived then derived = call('HGETALL', derivedKey) end
return { base, row[1], isContinuation and 2 or 3, row, messages, first, user, hasDerived and 1 or 0, derived }
`,
}

/** Reads messages of a session by their sequence numbers; an empty text stands for one that does not exist. */
export const messagesScript: Script = {
  name: 'messages',
  source: `
local found = {}
for at, sequence in ipairs(ARGV) do
  found[at] = redis.call('ZRANGEBYSCORE', KEYS[1], sequence, sequence)[1] or ''
end
return found
`,
}

/** Lists the changes of a scope since a stamp. */
export const changesScript: Script = {
  name: 'changes',
  source: `${prelude}
local base = call('HGET', metaKey, 'base') or createScope(ARGV[2])
local meta = call('HMGET', metaKey, 'removals', 'stamp')
local sessions = call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf')
return { base, meta[1] or '0', meta[2] or '0', sessions }
`,
}
