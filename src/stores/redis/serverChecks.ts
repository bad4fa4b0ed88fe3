import { MemoryError } from '../../domain/error.ts'
import { isErrorReply } from './errors.ts'
import type { RedisTransport, Reply } from './transport.ts'
import type { RedisAddress } from './url.ts'

type Requirement = {
  readonly setting: string
  readonly isMet: (value: string) => boolean
  readonly problem: string
  readonly remedy: string
}

const requirements: readonly Requirement[] = [
  {
    setting: 'save',
    isMet: (value) => value === '',
    problem: 'saves its data to disk',
    remedy: 'save ""',
  },
  {
    setting: 'appendonly',
    isMet: (value) => value === 'no',
    problem: 'writes a log of all changes to disk',
    remedy: 'appendonly no',
  },
  {
    setting: 'repl-diskless-sync',
    isMet: (value) => value === 'yes',
    problem: 'writes its data to disk for new replicas',
    remedy: 'repl-diskless-sync yes',
  },
  {
    setting: 'maxmemory-policy',
    isMet: (value) => value === 'noeviction',
    problem: 'drops sessions when its memory is full',
    remedy: 'maxmemory-policy noeviction',
  },
]

/** Writes nothing. A read-only replica refuses it: scripts with a header may write unless they say otherwise. */
const writableProbe = '#!lua flags=allow-oom\nreturn 1'

/**
 * Checks that every server can be written to, and that none writes sessions to disk or drops them.
 *
 * @throws MemoryError `busy` for a read-only replica; `bad-store` with the setting to change, also if a server does not
 * show its settings and nobody has confirmed them.
 */
export async function checkServers(transport: RedisTransport, settings: RedisAddress['settings']): Promise<void> {
  await checkWritable(transport)
  if (settings === 'confirmed') {
    await transport.sendToAll(['PING'])
    return
  }
  for (const requirement of requirements) {
    const replies = await readSetting(transport, requirement.setting)
    for (const reply of replies) {
      const value = parseSetting(reply)
      if (value === undefined) throw createHiddenError(transport.address)
      if (!requirement.isMet(value)) throw createSettingError(transport.address, requirement)
    }
  }
}

async function checkWritable(transport: RedisTransport): Promise<void> {
  try {
    await transport.sendToAll(['EVAL', writableProbe, '0'])
  } catch (error) {
    // Services that do not know headers of scripts answer with another error.
    if (!isErrorReply(error) || error.message.startsWith('READONLY')) throw error
  }
}

async function readSetting(transport: RedisTransport, setting: string): Promise<readonly Reply[]> {
  try {
    return await transport.sendToAll(['CONFIG', 'GET', setting])
  } catch (error) {
    // An unknown or forbidden command.
    if (isErrorReply(error) && /^(NOPERM|ERR)/.test(error.message)) throw createHiddenError(transport.address)
    throw error
  }
}

/** Parses the reply of CONFIG GET: a list of name and value. */
const parseSetting = (reply: Reply): string | undefined =>
  Array.isArray(reply) && typeof reply[1] === 'string' ? reply[1] : undefined

const createSettingError = (address: string, { problem, remedy }: Requirement): MemoryError =>
  new MemoryError(
    'bad-store',
    `Redis at ${address} ${problem}, but sessions must stay in memory until they end. Set ${remedy} in redis.conf or with CONFIG SET.`,
  )

const createHiddenError = (address: string): MemoryError =>
  new MemoryError(
    'bad-store',
    `Redis at ${address} does not show its settings. Make sure that persistence is off and maxmemory-policy is noeviction, then state it: add ?settings=confirmed to the URL.`,
  )
