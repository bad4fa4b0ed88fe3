import type { Json } from '../../../src/domain/entry.ts'
import { profiles } from '../../../src/profiles/index.ts'
import type { Finding, Part, RunOptions } from '../part.ts'
import { Random, seedOf } from '../random.ts'
import { operationOf } from './operations.ts'
import { createStoreServers, type StoreServers } from './storeServers.ts'
import { type Operation, otherTenant, type Tenant, World, type WorldOptions } from './world.ts'

/** Operations of acme, and of globex before each and at the same time. */
type Step = { readonly own: Operation; readonly before: readonly Operation[]; readonly during: readonly Operation[] }
type Episode = WorldOptions & { readonly steps: readonly Step[] }

const stepsPerEpisode = 250
const stepMs = 60_000

/** Start of the clock. Redis drops sessions that are a day older than its own. */
const startOf = ({ store }: Episode): number => (store === 'redis' ? Date.now() : 1_772_000_000_000)

/** Profiles that keep sessions in a store; those in RAM would not use a database. */
const profilesOn = (store: WorldOptions['store'] | undefined): readonly WorldOptions['profile'][] => {
  const names = Object.keys(profiles) as WorldOptions['profile'][]
  return store === 'postgres' || store === 'encrypted'
    ? names.filter((name) => profiles[name].durability === 'durable')
    : names
}

function createEpisode(seed: number, maxSteps: number, store?: WorldOptions['store']): Episode {
  const random = new Random(seed)
  const surface = random.weighted<Operation['surface']>([
    [16, 'memory'],
    // There is no graph in Redis.
    [store === 'redis' ? 0 : 4, 'tool'],
    [5, 'http'],
  ])
  const foreign = (max: number): readonly Operation[] =>
    random.list(0, max, () => operationOf(surface, 'globex', random))
  const kind =
    store ??
    random.weighted<WorldOptions['store']>([
      [4, 'ram'],
      [1, 'sqlite'],
      [1, 'encrypted'],
    ])
  const options = {
    surface,
    store: kind,
    profile: surface === 'tool' ? ('handoff' as const) : random.pick(profilesOn(kind)),
    withUpkeep: surface === 'memory' ? random.chance(0.5) : true,
  }
  const steps = Array.from({ length: Math.min(stepsPerEpisode, maxSteps) }, () => ({
    own: operationOf(surface, 'acme', random),
    before: random.chance(0.5) ? foreign(2) : [],
    // Ids of concurrent operations would come from one generator.
    during: surface === 'memory' && random.chance(0.3) ? foreign(1) : [],
  }))
  return { ...options, steps }
}

/** Runs the operations of acme in a world of its own and in one with globex; compares every response. */
async function runEpisode(
  episode: Episode,
  servers: StoreServers,
  onStep: () => boolean,
  onProblem: (kind: string, detail: string, upTo: number) => void,
): Promise<void> {
  const now = startOf(episode)
  await using alone = await World.open(episode, { servers, now, name: 'alone' })
  await using shared = await World.open(episode, { servers, now, name: 'shared' })
  for (const [index, { own, before, during }] of episode.steps.entries()) {
    alone.now += stepMs
    shared.now = alone.now
    const performForeign = async (operation: Operation): Promise<void> => {
      const response = await shared.perform('globex', operation, shared.idsOf('acme'))
      checkCanary('globex', operation, response, index, onProblem)
    }
    for (const operation of before) await performForeign(operation)
    const foreignIds = shared.idsOf('globex')
    const expected = await alone.perform('acme', own, foreignIds)
    const [actual] = await Promise.all([shared.perform('acme', own, foreignIds), ...during.map(performForeign)])
    if (actual !== expected)
      onProblem(`difference ${own.surface} ${own.name}`, firstDifference(expected, actual), index)
    checkCanary('acme', own, actual, index, onProblem)
    if (!onStep()) return
  }
}

/** Reports words of the other tenant in a response. */
function checkCanary(
  tenant: Tenant,
  { surface, name }: Operation,
  response: string,
  index: number,
  onProblem: (kind: string, detail: string, upTo: number) => void,
): void {
  const foreign = `canary${otherTenant[tenant]}`
  const at = response.indexOf(foreign)
  if (at !== -1) onProblem(`foreign text ${surface} ${name}`, response.slice(Math.max(0, at - 80), at + 120), index)
}

function firstDifference(expected: string, actual: string): string {
  let at = 0
  while (at < expected.length && expected[at] === actual[at]) at++
  const part = (text: string): string => text.slice(Math.max(0, at - 60), at + 120)
  return `alone: …${part(expected)}… with the other tenant: …${part(actual)}…`
}

/** Runs episodes, on servers of their own unless others are given. */
export async function runIsolation(
  { seed, inputs, store, isOver, counter, onProgress, onFinding }: RunOptions,
  given?: StoreServers,
): Promise<number> {
  await using own = createStoreServers()
  const servers = given ?? own
  let done = 0
  for (let number = 0; done < inputs && !isOver(); number++) {
    const episode = createEpisode(seedOf(seed, number), inputs - done, store)
    counter.add('episodes')
    await runEpisode(
      episode,
      servers,
      () => {
        counter.add(`${episode.surface} probes, ${episode.store} store`)
        done++
        if (done % 100 === 0) onProgress(done)
        return done < inputs && !isOver()
      },
      (kind, detail, upTo) =>
        onFinding({ kind, detail, input: toInput({ ...episode, steps: episode.steps.slice(0, upTo + 1) }) }),
    )
  }
  onProgress(done)
  return done
}

const toInput = (episode: Episode): Json => episode as unknown as Json

async function replay(input: Json, servers: StoreServers): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  const { steps = [], ...options } = input as unknown as Episode
  const complete = steps.filter(({ own, before, during }) => own?.name !== undefined && before && during)
  await runEpisode(
    { ...options, steps: complete },
    servers,
    () => true,
    (kind, detail) => findings.push({ kind, detail, input }),
  )
  return findings
}

/** Two-tenant differential over every operation. */
export const isolation: Part = {
  name: 'isolation',
  unit: 'probes',
  description: "responses to a tenant with and without another tenant's operations in between",
  fullCount: 1_000_000,
  sliceCount: 120,
  maxWorkers: 16,
  maxShrinkTries: 120,
  run: runIsolation,
  openReplayer: async () => {
    const servers = createStoreServers()
    return {
      replay: (input) => replay(input, servers),
      [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
    }
  },
}
