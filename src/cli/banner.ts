import type { Profile } from '../domain/profile.ts'
import type { Ways } from '../server/memoryRegistry.ts'
import type { Opened } from '../server/openServer.ts'

/** What a server is told of itself, for people and for programs. */
export type Facts = { readonly server: Opened; readonly ways: Ways; readonly store: string; readonly isOpen: boolean }

/** One JSON value for programs. */
export function factsOf({ server: { url, answers }, ways, store }: Facts): Readonly<Record<string, string | number>> {
  const { name, budget } = ways.session ?? ways.scope
  return { url, answers, store, profile: name, budget }
}

/** What a newcomer needs: where it listens, what to put into a client, where memory is kept; then what to beware of. */
export function banner(facts: Facts): string {
  const { url, answers, asksForKeys } = facts.server
  const profile = facts.ways.session ?? facts.ways.scope
  const body = `'{"model":"any","messages":[{"role":"user","content":"My cat is called Miso."}]}'`
  const key = asksForKeys ? " -H 'authorization: Bearer tk_…'" : ''
  const lines = [
    `Threadkeep listens on ${url}`,
    `${answers} answers; base URL for a client: ${url}/v1/demo:me (any tenant:session), API key: ${asksForKeys ? 'one from threadkeep keys create' : 'any'}; MCP: ${url}/mcp`,
    `${restsIn(facts, profile)} Profile ${profile.name} shows at most ${profile.budget} tokens.`,
    ...warnings(facts),
    'Try it, then ask what your cat is called:',
    `  curl ${url}/v1/demo:me/chat/completions -H 'content-type: application/json'${key} -d ${body}`,
  ]
  return `${lines.join('\n')}\n`
}

function restsIn({ store, ways }: Facts, { durability }: Profile): string {
  const gone = 'is in RAM and is gone when this stops.'
  if (store === 'ram:') return `Memory ${gone}`
  if (ways.session === undefined) return `Sessions are not remembered. Tenants are, in ${store}.`
  return durability === 'ram'
    ? `What sessions say ${gone} The rest is kept in ${store}.`
    : `Memory is kept in ${store}.`
}

function warnings({ server, isOpen, ways }: Facts): readonly string[] {
  const isReachable = !/^http:\/\/(?:127\.|\[::1\])/.test(server.url)
  const profiles = [
    ways.scope,
    ...(ways.session === undefined ? [] : [ways.session]),
    ...Object.values(ways.templates).map(({ profile }) => profile),
  ]
  const isKept = profiles.some(({ secrets, durability }) => secrets === 'keep' && durability === 'durable')
  return [
    ...(isOpen && isReachable && !server.asksForKeys
      ? ['WARNING: whoever reaches this address can read and write memory (--open).']
      : []),
    ...(isKept ? ['WARNING: keys and passwords in what is said are kept like anything else (--secrets keep).'] : []),
  ]
}
