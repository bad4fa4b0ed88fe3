import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { escapeHtml } from '../../text/escapeHtml.ts'
import { type Handlers, type RequestContext, sendJson } from '../http/requestContext.ts'
import { checkReadiness } from '../observability/readiness.ts'
import { routes } from '../openapi/routes.ts'
import { checkQuery } from './input.ts'

/** Start page of the server. It is public and shows nothing that was stored or configured. */
export const homeRoutes: Handlers = {
  'GET /': async (context) => {
    const { server, request, client, query } = context
    checkQuery(query, [])
    const { status } = checkReadiness(await server.readState())
    const home = describeHome(context, status)
    const type = negotiateType(request.headers.accept)
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

const style = `
:root { color-scheme: light dark; --text: #1c2024; --muted: #60646c; --line: #d9d9e0; --box: #f4f4f6; --accent: #0b68cb; --page: #fff }
@media (prefers-color-scheme: dark) {
  :root { --text: #edeef0; --muted: #b0b4ba; --line: #363a3f; --box: #212225; --accent: #70b8ff; --page: #111113 }
}
* { box-sizing: border-box }
body { margin: 0; padding: 3rem 1.25rem; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 52rem; margin: 0 auto }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2 }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.05rem }
p { margin: .5rem 0; color: var(--muted) }
a { color: var(--accent) }
.status { display: inline-block; padding: .1rem .6rem; border: 1px solid var(--line); border-radius: 1rem; font-size: .85rem }
.row { display: flex; gap: .5rem; align-items: stretch }
.row code { flex: 1 }
code, pre { display: block; margin: 0; padding: .65rem .8rem; background: var(--box); border: 1px solid var(--line);
  border-radius: .4rem; font: 13.5px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; user-select: all }
pre + pre { margin-top: .5rem }
button { padding: 0 .9rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--box); color: var(--text); font: inherit; cursor: pointer }
ul { margin: 0; padding: 0; list-style: none }
li { padding: .15rem 0 }
`
const script = `
const button = document.querySelector('button')
button.hidden = false
button.addEventListener('click', async () => {
  await navigator.clipboard.writeText(document.querySelector('#base').textContent)
  button.textContent = 'Copied'
})
`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(script)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  vary: 'accept',
  'x-content-type-options': 'nosniff',
}

const toHtml = ({ status, baseUrl, requiresKeys, commands, links }: Home): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Threadkeep</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Threadkeep</h1>
<p>Memory for language models. <span class="status">status: ${escapeHtml(status)}</span></p>
<h2>Base URL for OpenAI and Anthropic clients</h2>
<div class="row"><code id="base">${escapeHtml(baseUrl)}</code><button type="button" hidden>Copy</button></div>
<p>demo:me is session me of tenant demo. Use any names.${requiresKeys ? ' This server requires an API key.' : ''}</p>
<h2>Try it</h2>
${commands.map((command) => `<pre>${escapeHtml(command)}</pre>`).join('\n')}
<h2>More</h2>
<ul>
${links.map(([path, description]) => `<li><a href="${path}">${path}</a> – ${escapeHtml(description)}</li>`).join('\n')}
</ul>
</main>
<script>${script}</script>
</body>
</html>
`
