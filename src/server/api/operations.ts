import { describeDegradation } from '../../domain/degradation.ts'
import type { Scope } from '../../domain/key.ts'
import { onlyScope } from '../auth/credential.ts'
import { checkAdmin, type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import { checkReadiness } from '../observability/readiness.ts'
import { usageIntervalMs } from '../observability/usageSeries.ts'
import { parseOwnScope } from './access.ts'
import { checkQuery } from './input.ts'

const maxListedSteps = 50

/** Usage over time, and the state of the server in words. */
export const operationsRoutes: Handlers = {
  'GET /api/usage': async (context) => {
    const { server, client, query } = context
    const scope = readScope(context)
    checkQuery(query, ['scope'])
    sendJson(client.response, 200, {
      intervalMs: usageIntervalMs,
      points: server.usageSeries.read(scope, server.clock()),
    })
  },
  'GET /api/operations': async (context) => {
    checkAdmin(context)
    checkQuery(context.query, [])
    const { memories, readState } = context.server
    const state = await readState()
    const health = memories.all().map((memory) => ({ profile: memory.profile.name, ...memory.health() }))
    sendJson(context.client.response, 200, {
      ...checkReadiness(state),
      upstreams: state.upstreams,
      upkeep: health.map(({ profile, by, running, done }) => ({ profile, by, running, done })),
      steps: health
        .flatMap(({ recent }) => recent)
        .sort((a, b) => b.at - a.at)
        .slice(0, maxListedSteps)
        .map(({ faults, ...step }) => ({ ...step, faults: faults.map((fault) => describeDegradation(fault).message) })),
      ram: state.bytes,
      pendingDeliveries: state.pendingDeliveries,
    })
  },
}

/** The tenant whose usage is requested; undefined for all, which only operators may see. */
function readScope(context: RequestContext): Scope | undefined {
  const { credential, query } = context
  const text = query.get('scope') ?? (credential?.rights === 'admin' ? null : credential && onlyScope(credential))
  if (text !== null && text !== undefined) return parseOwnScope(context, text)
  checkAdmin(context)
  return undefined
}
