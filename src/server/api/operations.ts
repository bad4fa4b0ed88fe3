import { parseKey } from '../../domain/key.ts'
import type { OptimizerStatus } from '../../upkeep/optimizer/optimizer.ts'
import { everywhere, soleScope } from '../auth/credential.ts'
import { Refusal } from '../http/httpError.ts'
import { checkAdmin, type Exchange, type Handlers, own, send } from '../http/requestContext.ts'
import { readiness } from '../observability/ready.ts'
import { openapi } from '../openapi/openapi.ts'
import { checkQuery } from './query.ts'
import { storesOf } from './session.ts'

/** For whoever runs the server. */
export const operations: Handlers = {
  'GET /healthz': async ({ house, client }) => {
    const { ready: _ready, ...health } = readiness(await house.state())
    const { profile } = house.memories.sessions
    const { degraded: _degraded, ...upkeep } = house.memories.sessions.health()
    send(client.response, 200, { ...health, upkeep, profile: profile.name, secrets: profile.secrets })
  },
  'GET /readyz': async ({ house, client }) => {
    const state = readiness(await house.state())
    send(client.response, state.ready ? 200 : 503, state)
  },
  'GET /metrics': async (exchange) => {
    checkAdmin(exchange)
    const { metrics } = exchange.house
    exchange.client.response.writeHead(200, { 'content-type': metrics.type }).end(await metrics.text())
  },
  'GET /openapi.json': async ({ client }) => send(client.response, 200, openapi()),
  'GET /learning/optimizer/status': async (exchange) => {
    const where = placeOf(exchange)
    checkQuery(exchange.query, ['key'])
    const memories = [...storesOf(exchange.house).values()]
    send(
      exchange.client.response,
      200,
      together(await Promise.all(memories.map((memory) => memory.upkeep.optimizer(where)))),
    )
  },
}

/** Of which session or tenant the status is wanted; undefined for all. */
function placeOf(exchange: Exchange): string | undefined {
  const { credential, query } = exchange
  const key = query.get('key') ?? (credential && soleScope(credential))
  if (key !== undefined) {
    own(exchange, parseKey(key))
    return key
  }
  if (credential === undefined || credential.scopes.includes(everywhere)) return undefined
  throw new Refusal(
    400,
    'missing_key',
    `key is missing: say which of ${credential.scopes.join(', ')} it is about.`,
    'key',
  )
}

/** The sums of several stores, with the parameters of the one in which most was done. */
function together(statuses: readonly OptimizerStatus[]): OptimizerStatus {
  const sum = (name: 'totalOptimizations' | 'totalTokensSaved'): number =>
    statuses.reduce((total, status) => total + status[name], 0)
  const [runs, saved] = [sum('totalOptimizations'), sum('totalTokensSaved')]
  const busiest = statuses.reduce((most, status) =>
    status.totalOptimizations > most.totalOptimizations ? status : most,
  )
  return {
    ...busiest,
    totalOptimizations: runs,
    totalTokensSaved: saved,
    avgSavingsPerRun: runs === 0 ? 0 : Math.round(saved / runs),
  }
}
