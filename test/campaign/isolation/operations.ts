import type { Json } from '../../../src/domain/entry.ts'
import { httpRequest, toolCall } from '../fuzz/httpRequests.ts'
import { hostileText } from '../hostile.ts'
import type { Random } from '../random.ts'
import { fileId, fileOf, fileToolCall, leftOutRoutes, tenantRequest, type Words } from './tenantRequests.ts'
import type { Operation, Tenant } from './world.ts'

/** Words of both tenants. Their sessions, people and subjects have the same names, and only the values differ. */
const subjects = ['cat', 'database', 'deadline', 'invoice', 'office', 'password', 'manager', 'budget']

/** A word that only this tenant says. */
const canaryOf = (tenant: Tenant, random: Random): string => `canary${tenant}${random.int(0, 9)}`

const sentence = (tenant: Tenant, random: Random): string =>
  random.weighted<() => string>([
    [4, () => `My ${random.pick(subjects)} is ${canaryOf(tenant, random)} since ${random.int(1, 28)} March.`],
    [2, () => `What is my ${random.pick(subjects)}?`],
    [1, () => `Remember that the ${random.pick(subjects)} is called ${canaryOf(tenant, random)}.`],
    [1, () => hostileText(random, random.int(1, 400))],
  ])()

const session = (random: Random): string => `{scope}:${random.pick(['ann', 'bob', 'cy', 'dee'])}`
const keyed = (random: Random): Json => [session(random)]

const wordsOf = (tenant: Tenant, random: Random): Words => ({
  sentence: () => sentence(tenant, random),
  subject: () => random.pick(subjects),
  session: () => session(random),
})

/** The last knowledge that the tenant was shown or, less often, that of the other one. */
const knowledgeId = (random: Random): string => (random.chance(0.7) ? '{knowledge}' : '{other knowledge}')

type Generator = (tenant: Tenant, random: Random) => Json

/** Arguments of every library operation and of those on files, with its weight. */
const memoryOperations: Readonly<Record<string, readonly [weight: number, args: Generator]>> = {
  append: [
    30,
    (tenant, random) => [
      session(random),
      random.list(1, 3, (index) => ({
        role: index % 2 === 0 ? 'user' : 'assistant',
        content: sentence(tenant, random),
        ...(random.chance(0.3) && { id: `id ${random.int(1, 20)}` }),
      })),
    ],
  ],
  replace: [
    3,
    (tenant, random) => [
      session(random),
      random.chance(0.5) ? `m${random.int(1, 9)}` : `id ${random.int(1, 20)}`,
      { role: 'user', content: sentence(tenant, random) },
    ],
  ],
  replaceFrom: [
    1,
    (tenant, random) => [
      session(random),
      `m${random.int(1, 9)}`,
      random.list(0, 2, () => ({ role: 'user', content: sentence(tenant, random) })),
    ],
  ],
  sessions: [3, (tenant, random) => [{ scope: '{scope}', metadata: { note: canaryOf(tenant, random) }, limit: 3 }]],
  putRow: [
    4,
    (tenant, random) => [
      '{scope}',
      random.list(0, 2, () => random.pick(subjects)),
      random.pick(subjects),
      canaryOf(tenant, random),
    ],
  ],
  getRow: [2, (_, random) => ['{scope}', random.list(0, 2, () => random.pick(subjects)), random.pick(subjects)]],
  deleteRow: [1, (_, random) => ['{scope}', [], random.pick(subjects)]],
  listRows: [
    2,
    (_, random) => ['{scope}', random.list(0, 1, () => random.pick(subjects)), { limit: random.int(1, 9) }],
  ],
  context: [
    15,
    (tenant, random) => [
      session(random),
      { ...(random.chance(0.5) && { query: sentence(tenant, random) }), budget: random.int(200, 2_000) },
    ],
  ],
  transcript: [10, (_, random) => [session(random), { limit: random.int(1, 20), newest: random.chance(0.5) }]],
  search: [
    10,
    (tenant, random) => [
      '{scope}',
      random.chance(0.5) ? random.pick(subjects) : sentence(tenant, random),
      { limit: 5 },
    ],
  ],
  remember: [
    5,
    (tenant, random) => [
      '{scope}',
      {
        category: 'domain',
        key: random.pick(subjects),
        value: canaryOf(tenant, random),
        ...(random.chance(0.2) && { person: 'ann' }),
        ...(random.chance(0.3) && { by: 'assistant' }),
      },
    ],
  ],
  epoch: [3, (_, random) => keyed(random)],
  forget: [
    3,
    (_, random) => [
      random.weighted<Json>([
        [2, { key: session(random) }],
        [4, { key: session(random), messageId: `m${random.int(1, 9)}` }],
        [2, { scope: '{scope}', text: random.pick(subjects) }],
        [0.5, { scope: '{scope}' }],
      ]),
    ],
  ],
  end: [1, (_, random) => keyed(random)],
  transfer: [0.5, (_, random) => [session(random), `{scope}:moved${random.int(1, 3)}`]],
  metadata: [3, (_, random) => keyed(random)],
  setMetadata: [2, (tenant, random) => [session(random), { metadata: { note: canaryOf(tenant, random) } }]],
  mask: [2, (tenant, random) => [session(random), sentence(tenant, random)]],
  knowsSecrets: [1, (_, random) => [session(random), '[secret:key:1]']],
  trace: [0.5, (_, random) => keyed(random)],
  export: [0.3, () => []],
  import: [0.2, () => []],
  record: [3, (_, random) => keyed(random)],
  updateRecord: [
    1,
    (tenant, random) => [
      session(random),
      { important_data: { user_preferences: { theme: canaryOf(tenant, random) } } },
    ],
  ],
  clearRecord: [0.3, (_, random) => keyed(random)],
  facts: [3, (_, random) => keyed(random)],
  summaries: [2, (_, random) => keyed(random)],
  losses: [0.5, (_, random) => keyed(random)],
  knowledge: [3, () => ['{scope}', {}]],
  optimizerStatus: [2, (_, random) => (random.chance(0.5) ? keyed(random) : ['{scope}'])],
  approve: [1, (_, random) => ['{scope}', knowledgeId(random), random.chance(0.2) ? { person: 'ann' } : {}]],
  restore: [1, (_, random) => ['{scope}', knowledgeId(random), random.chance(0.2) ? { person: 'ann' } : {}]],
  // Also runs the rules that depend on time, such as the optimizer.
  runUpkeep: [2, (_, random) => [session(random), { summarise: random.chance(0.5) }]],
  'files.add': [2, (tenant, random) => [...fileOf(wordsOf(tenant, random), random)]],
  'files.list': [2, (_, random) => [{ limit: random.int(1, 9) }]],
  'files.get': [1, (_, random) => [fileId(random)]],
  'files.text': [1, (_, random) => [fileId(random)]],
  'files.remove': [0.5, (_, random) => [fileId(random)]],
}
const weighted = Object.entries(memoryOperations).map(([name, [weight]]) => [weight, name] as const)
export const isolatedMethods: readonly string[] = Object.keys(memoryOperations)

/** Requests and tool calls that are made for two tenants; the others are those of the fuzzer. */
const tenantShare = 0.5

/** Names the tenant in a generated request, sometimes the other one, and sometimes an id of the other one. */
function nameTenants(text: string, tenant: Tenant, random: Random): string {
  const [scope, other] = [random.chance(0.95) ? '{scope}' : '{other}', random.chance(0.8) ? '' : 'other ']
  return text
    .replaceAll(/acme|globex/g, scope)
    .replaceAll('My cat', `My ${canaryOf(tenant, random)}`)
    .replaceAll(/(?<=\{)(?=(?:file|response|conversation|item|knowledge|receipt)\})/g, other)
}

/** An operation of a tenant on a surface. */
export function operationOf(surface: Operation['surface'], tenant: Tenant, random: Random): Operation {
  const isTenantOperation = surface !== 'memory' && random.chance(tenantShare)
  if (surface === 'tool') {
    if (isTenantOperation && random.chance(0.3)) return { surface, ...fileToolCall(wordsOf(tenant, random), random) }
    const { name, arguments: args } = toolCall(random)
    return { surface, name, args: JSON.parse(nameTenants(args, tenant, random)) as Json }
  }
  if (surface === 'http') {
    if (isTenantOperation) return tenantRequest(wordsOf(tenant, random), random)
    for (;;) {
      const { route, method, path, body, headers, isBinary = false } = httpRequest(random)
      if (isBinary || route in leftOutRoutes) continue
      const text = JSON.stringify({ method, path, headers, ...(body !== undefined && { body }) })
      return { surface, name: route, args: JSON.parse(nameTenants(text, tenant, random)) as Json }
    }
  }
  const name = random.weighted(weighted)
  return { surface, name, args: memoryOperations[name]?.[1](tenant, random) ?? [] }
}
