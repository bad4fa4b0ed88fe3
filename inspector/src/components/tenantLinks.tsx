import { apiPath, request } from '../api/client.ts'
import type { Page, Session } from '../api/types.ts'
import { formatRoute, type ViewName } from '../router.ts'
import { useResource } from '../useResource.ts'

const readSessions = 200
const maxLinks = 8

/** Links to the first tenants that have sessions, for a reader who has not chosen one. */
export function TenantLinks({ view }: { view: ViewName }) {
  const sessions = useResource(
    (signal) => request<Page<Session>>(apiPath(['api', 'sessions'], { limit: readSessions }), { signal }),
    [],
  )
  const tenants = [...new Set((sessions.data?.items ?? []).map(({ key }) => key.split(':')[0] as string))]
  return (
    <div class="row center">
      {tenants.slice(0, maxLinks).map((tenant) => (
        <a key={tenant} class="button" href={formatRoute(view, tenant)}>
          {tenant}
        </a>
      ))}
    </div>
  )
}
