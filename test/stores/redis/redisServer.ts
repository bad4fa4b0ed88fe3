import { afterAll, onTestFinished, TestRunner } from 'vitest'
import { type RedisServer, type StartOptions, startRedisServer } from '../../support/redisServer.ts'

/** Runs work after the current test, or after the tests of the file if there is none; last registered first. */
export const onEnd = (cleanUp: () => void | Promise<void>): void =>
  TestRunner.getCurrentTest() === undefined ? afterAll(cleanUp) : onTestFinished(cleanUp)

/** Starts a server on a free port. It ends with the current test, or with the tests of the file if there is none. */
export async function startRedis(options: StartOptions = {}): Promise<RedisServer> {
  const server = await startRedisServer(options)
  onEnd(server.remove)
  return server
}

let prefixes = 0
/** Returns a prefix that no other test uses, so that each store is empty. */
export const newPrefix = (): string => `t${++prefixes}`
