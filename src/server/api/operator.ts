import { parseKey } from '../../domain/key.ts'
import type { OptimizerStatus } from '../../upkeep/optimizer/optimizer.ts'
import { everywhere, soleScope } from '../auth/credential.ts'
import { Refusal } from '../http/httpError.ts'
import { checkAdmin, type Exchange, type Handlers, own, send } from '../http/requestContext.ts'
import { checkReadiness } from '../observability/readiness.ts'
import { openapi } from '../openapi/openapi.ts'
import { sessionStores } from './access.ts'
import { checkQuery } from './input.ts'

/** Health, metrics and documentation. */
export const operatorRoutes: Handlers = {
  'GET /healthz': async ({ house: server, client }) => {
    const { ready: _ready, ...health } = checkReadiness(await server.state())
    const { profile } = server.memories.sessions
    const { degraded: _degraded, ...upkeep } = server.memories.sessions.health()
    send(client.response, 200, { ...health, upkeep, profile: profile.name, secrets: profile.secrets })
  },
  'GET /readyz': async ({ house: server, client }) => {
    const readiness = checkReadiness(await server.state())
    send(client.response, readiness.ready ? 200 : 503, readiness)
  },
  'GET /metrics': async (context) => {
    checkAdmin(context)
    const { metrics } = context.house
    context.client.response.writeHead(200, { 'content-type': metrics.type }).end(await metrics.text())
  },
  'GET /openapi.json': async ({ client }) => send(client.response, 200, openapi()),
  'GET /learning/optimizer/status': async (context) => {
    const key = readOptimizerKey(context)
    checkQuery(context.query, ['key'])
    const memories = [...sessionStores(context.house).values()]
    const statuses = await Promise.all(memories.map((memory) => memory.upkeep.optimizer(key)))
    send(context.client.response, 200, mergeStatuses(statuses))
  },
}

/** The session or tenant whose status is requested; undefined for all. */
function readOptimizerKey(context: Exchange): string | undefined {
  const { credential, query } = context
  const key = query.get('key') ?? (credential && soleScope(credential))
  if (key !== undefined) {
    own(context, parseKey(key))
    return key
  }
  if (credential === undefined || credential.scopes.includes(everywhere)) return undefined
  throw new Refusal(400, 'missing_key', `key is missing. Use one of: ${credential.scopes.join(', ')}.`, 'key')
}

/** Sums the status of several stores, with the parameters of the one with the most runs. */
function mergeStatuses(statuses: readonly OptimizerStatus[]): OptimizerStatus {
  const sum = (name: 'totalOptimizations' | 'totalTokensSaved'): number =>
    statuses.reduce((total, status) => total + status[name], 0)
  const [runs, saved] = [sum('totalOptimizations'), sum('totalTokensSaved')]
  const busiest = statuses.reduce((best, status) =>
    status.totalOptimizations > best.totalOptimizations ? status : best,
  )
  return {
    ...busiest,
    totalOptimizations: runs,
    totalTokensSaved: saved,
    avgSavingsPerRun: runs === 0 ? 0 : Math.round(saved / runs),
  }
}
