import { afterAll } from 'vitest'
import { type RedisServer, type StartOptions, startRedisServer } from '../../support/redisServer.ts'

const cleanups: (() => void | Promise<void>)[] = []
// Registered when the file is loaded: inside of a test it is too late.
afterAll(async () => {
  for (const cleanUp of cleanups.reverse()) await cleanUp()
})

/** Runs work after all tests of the file, last registered first. */
export const onEnd = (cleanUp: () => void | Promise<void>): void => void cleanups.push(cleanUp)

/** Starts a server on a free port. It ends with the tests of the file. */
export async function startRedis(options: StartOptions = {}): Promise<RedisServer> {
  const server = await startRedisServer(options)
  onEnd(server.remove)
  return server
}

let prefixes = 0
/** Returns a prefix that no other test uses, so that each store is empty. */
export const newPrefix = (): string => `t${++prefixes}`
