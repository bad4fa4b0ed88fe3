import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FileService } from '../../src/files/files.ts'
import { Memory } from '../../src/memory.ts'
import { routes } from '../../src/server/openapi/routes.ts'
import { Upkeep } from '../../src/upkeep/upkeep.ts'
import { seed } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { getPostgres } from '../support/postgres.ts'
import { readFailures, writeFailure } from './failures.ts'
import { fuzzedCommands } from './fuzz/cliCommands.ts'
import { fuzzedRoutes, fuzzedTools } from './fuzz/httpRequests.ts'
import { runIsolation } from './isolation/isolation.ts'
import { isolatedMethods } from './isolation/operations.ts'
import { createStoreServers } from './isolation/storeServers.ts'
import { leftOutRoutes } from './isolation/tenantRequests.ts'
import { fileMethods, memoryMethods, upkeepMethods } from './isolation/world.ts'
import { Counter, type Finding } from './part.ts'
import { parts } from './parts.ts'
import { shrink } from './shrink.ts'

/** Methods that concern all tenants or none. */
const sharedMethods: ReadonlySet<string> = new Set([
  ...['constructor', 'health', 'upkeep', 'lifecycle', 'sweep', 'close', 'embeddingProgress', 'replay', 'maskMessage'],
  // The methods of a table are operations of their own: putRow, getRow, deleteRow and listRows.
  'table',
])

/** Methods of upkeep that the engine and its host call: they return nothing of one tenant. */
const sharedUpkeepMethods: ReadonlySet<string> = new Set([
  ...['constructor', 'notify', 'storeReminders', 'invalidate', 'whenReady', 'tick', 'whenIdle', 'health', 'stop'],
  ...['rederive', 'learn', 'head'],
])

/** Methods of the file service for its host, its own, and `addInBackground`, which routes and messages with files call. */
const sharedFileMethods: ReadonlySet<string> = new Set([
  ...['constructor', 'addInBackground', 'sweep', 'waitUntilIdle', 'close'],
  ...['startUpload', 'validate', 'enqueue', 'findRecord', 'readMessages', 'createId'],
])

/** Returns the methods of a class that are neither compared nor listed as shared. */
const findLeftOut = (prototype: object, compared: Iterable<string>, shared: ReadonlySet<string>): readonly string[] => {
  const known = new Set([...compared, ...shared])
  return Object.getOwnPropertyNames(prototype).filter((name) => !known.has(name))
}

const serverProbes = 30

describe('a slice of the hardening campaign', () => {
  for (const part of parts)
    it(`${part.name} › ${part.sliceCount} ${part.unit} › finds no failure`, async () => {
      const findings: Finding[] = []
      const done = await part.run({
        seed,
        inputs: part.sliceCount,
        isOver: () => false,
        counter: new Counter(),
        onProgress: () => undefined,
        onFinding: (finding) => findings.push(finding),
      })
      expect(findings.map(({ kind, detail }) => `${kind}: ${detail.slice(0, 300)}`)).toEqual([])
      expect(done).toBe(part.sliceCount)
    })

  for (const store of ['postgres', 'redis'] as const)
    verifies('X-06', `isolation on ${store} › ${serverProbes} probes › finds no failure`, async () => {
      await using servers = createStoreServers(getPostgres)
      const findings: Finding[] = []
      const counter = new Counter()
      const options = {
        seed: 2,
        store,
        counter,
        inputs: serverProbes,
        isOver: () => false,
        onProgress: () => undefined,
      }
      const done = await runIsolation({ ...options, onFinding: (finding) => findings.push(finding) }, servers)
      expect(findings.map(({ kind, detail }) => `${kind}: ${detail.slice(0, 300)}`)).toEqual([])
      const ofStore = Object.entries(counter.figures).filter(([name]) => name.endsWith(`probes, ${store} store`))
      expect([done, ofStore.reduce((sum, [, count]) => sum + count, 0)]).toEqual([serverProbes, serverProbes])
    })

  it('covers every route, and all tools, commands and library operations that it lists', () => {
    expect([...fuzzedRoutes].sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort())
    expect(fuzzedTools.length).toBeGreaterThan(25)
    expect(fuzzedCommands).toContain('sessions list')
  })

  it('isolation › compares every operation of a tenant, and says why routes are left out', () => {
    const names = [...Object.keys(memoryMethods), ...Object.keys(fileMethods).map((name) => `files.${name}`)]
    expect([...isolatedMethods].sort()).toEqual(names.sort())
    expect(findLeftOut(Memory.prototype, Object.keys(memoryMethods), sharedMethods)).toEqual([])
    expect(findLeftOut(Upkeep.prototype, Object.values(upkeepMethods), sharedUpkeepMethods)).toEqual([])
    expect(findLeftOut(FileService.prototype, Object.keys(fileMethods), sharedFileMethods)).toEqual([])
    expect(Object.keys(leftOutRoutes).filter((route) => !fuzzedRoutes.includes(route))).toEqual([])
  })
})

describe('a failure', () => {
  it('shrinks to the smallest input that still fails', async () => {
    const input = { steps: [{ a: 'xxxxBADxxxx', b: [1, 2, 3] }, { c: 'fine' }], more: { deep: ['x'] } }
    const fails = async (candidate: unknown): Promise<boolean> => JSON.stringify(candidate).includes('BAD')
    expect(await shrink(input, fails, { maxTries: 1_000, deadline: Date.now() + 60_000 })).toEqual({
      steps: [{ a: 'BAD' }],
    })
  })

  it('is written to a file and read back, also with unpaired surrogates and long texts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadkeep-failures-'))
    const input = { text: `${'long '.repeat(2_000)}\ud800`, short: '\u0000\udc00' }
    const failure = { part: 'fuzz', kind: 'some kind', detail: 'some detail', seed: 1, input }
    writeFailure(failure, folder)
    expect([...readFailures(folder).values()]).toEqual([failure])
    rmSync(folder, { recursive: true })
  })
})
