import type { IncomingMessage } from 'node:http'
import { escapeHtml } from '../../text/escapeHtml.ts'
import { type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import { checkReadiness } from '../observability/readiness.ts'
import { routes } from '../openapi/routes.ts'
import { checkQuery } from './input.ts'
import { sendInspectorPage } from './inspector.ts'

/**
 * Start page of the server: the inspector for browsers, a description for other clients. It is public and shows
 * nothing that was stored or configured.
 */
export const homeRoutes: Handlers = {
  'GET /': async (context) => {
    const { server, request, client, query } = context
    checkQuery(query, [])
    const type = negotiateType(request.headers.accept)
    if (type === 'text/html' && (await sendInspectorPage(context))) return
    const { status } = checkReadiness(await server.readState())
    const home = describeHome(context, status)
    if (type === 'application/json') return sendJson(client.response, 200, toJson(home), commonHeaders)
    const body = Buffer.from(type === 'text/html' ? toHtml(home) : toText(home))
    client.response
      .writeHead(200, { ...commonHeaders, 'content-type': `${type}; charset=utf-8`, 'content-length': body.length })
      .end(body)
  },
}

type Home = {
  readonly status: string
  readonly baseUrl: string
  readonly requiresKeys: boolean
  readonly commands: readonly string[]
  /** Paths and descriptions. */
  readonly links: readonly (readonly [path: string, description: string])[]
}

const pages: Home['links'] = [
  ['/docs', 'API reference'],
  ['/openapi.json', 'OpenAPI document'],
  ['/healthz', 'health'],
  ['/metrics', 'Prometheus metrics'],
]

function describeHome({ server, request }: RequestContext, status: string): Home {
  const requiresKeys = server.credentials?.isRequired(server.clock()) ?? false
  const baseUrl = `${originOf(request)}/v1/demo:me`
  const key = requiresKeys ? " -H 'authorization: Bearer KEY'" : ''
  const ask = (content: string): string =>
    `curl ${baseUrl}/chat/completions${key} -H 'content-type: application/json' \\\n` +
    `  -d '{"model":"gpt-5.4-mini","messages":[{"role":"user","content":"${content}"}]}'`
  return {
    status,
    baseUrl,
    requiresKeys,
    commands: [ask('My cat is called Miso.'), ask('What is my cat called?')],
    links: pages.filter(([path]) => routes.some((route) => route.path === path)),
  }
}

/** Address under which the client reaches the server. The host was checked before. */
function originOf({ headers }: IncomingMessage): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'
  return `${scheme}://${headers.host ?? '127.0.0.1'}`
}

const types = ['text/plain', 'application/json', 'text/html'] as const

/** The type that the client prefers; of equal ones the first it names, and plain text for any type. */
function negotiateType(accept = ''): (typeof types)[number] {
  let best: (typeof types)[number] = 'text/plain'
  let bestQuality = 0
  for (const range of accept.slice(0, 1_000).split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const type = types.find((known) => known === name)
    const quality = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)
    if (type === undefined || !(quality > bestQuality)) continue
    best = type
    bestQuality = quality
  }
  return best
}

const toJson = ({ status, baseUrl, requiresKeys, links }: Home): unknown => ({
  name: 'threadkeep',
  status,
  baseUrl,
  requiresKeys,
  links: Object.fromEntries(links.map(([path, description]) => [description, path])),
})

const toText = ({ status, baseUrl, requiresKeys, commands, links }: Home): string =>
  [
    `Threadkeep, memory for language models. Status: ${status}.`,
    `Base URL for clients: ${baseUrl} (tenant demo, session me)${requiresKeys ? '. An API key is required.' : ''}`,
    '',
    ...commands,
    '',
    ...links.map(([path, description]) => `${path.padEnd(14)} ${description}`),
    '',
  ].join('\n')

const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  vary: 'accept',
  'x-content-type-options': 'nosniff',
}

/** Shown to browsers in place of an inspector page that was not built, which happens in a checkout only. */
const toHtml = (home: Home): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Threadkeep</title>
</head>
<body>
<p>The inspector page is not built. Run <code>npm run inspector</code> in the checkout, then reload this page.</p>
<pre>${escapeHtml(toText(home))}</pre>
</body>
</html>
`
