import { createHash } from 'node:crypto'
import { escapeHtml } from '../../text/escapeHtml.ts'
import {
  type BodyRow,
  buildExample,
  createResolver,
  type FieldRow,
  listOperations,
  type OperationRow,
  type ParameterRow,
  type Resolve,
  type TagRow,
} from './operationList.ts'
import type { Schema } from './schema.ts'

const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dee4, #30363d); --soft: light-dark(#f4f6f8, #161b22);
  --text: light-dark(#1f2328, #e6edf3); --dim: light-dark(#59636e, #9198a1); --link: light-dark(#0757b8, #6cb2ff); }
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 1rem }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
body { margin: 0; display: grid; grid-template-columns: 19rem minmax(0, 1fr); font: 1rem/1.5 system-ui, sans-serif;
  color: var(--text); background: light-dark(#fff, #0d1117) }
a { color: var(--link) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line);
  font-size: .875rem }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0 }
nav a { text-decoration: none; overflow-wrap: anywhere }
nav h2 { font-size: .875rem; margin: 0 }
main { padding: 1rem 2rem 6rem; max-width: 62rem }
section { border-top: 1px solid var(--line); padding: 1rem 0 }
h3 { margin: 0 } h4 { margin: 1rem 0 .25rem; font-size: .875rem }
p { margin: .5rem 0 } .dim { color: var(--dim) }
code, pre { font: .875rem/1.5 ui-monospace, monospace }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .75rem; overflow: auto;
  max-height: 26rem; margin: .5rem 0 }
.route { background: var(--soft); border-radius: 6px; padding: .25rem .5rem; overflow-wrap: anywhere }
.tables { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .875rem }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line) }
summary { cursor: pointer; font-size: .875rem; margin-top: .5rem }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; border-right: 0 }
  main { padding: 1rem } }
`

/** Content security policy of the page: it loads nothing, runs nothing, and has one style sheet of its own. */
export const docsPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Renders an OpenAPI document as one HTML page without scripts and without further requests.
 *
 * @example
 * renderDocsPage(buildOpenApi())
 */
export function renderDocsPage(document: Schema): string {
  const { title, version, summary, description } = document.info as Readonly<Record<string, string>>
  const tags = listOperations(document)
  const resolve = createResolver(document)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(`${title} ${version}: HTTP reference`)}</title>
<style>${style}</style>
</head>
<body>
<nav aria-label="Operations">
${tags.map(renderNavigation).join('\n')}
</nav>
<main>
<h1>${escapeHtml(`${title} ${version}`)}</h1>
<p>${renderText(summary)}</p>
<p>${renderText(description)} The same as JSON: <a href="openapi.json">openapi.json</a>.</p>
${tags.map((tag) => renderTag(tag, resolve)).join('\n')}
</main>
</body>
</html>
`
}

const renderNavigation = ({ name, operations }: TagRow): string =>
  `<h2><a href="#tag-${name}">${escapeHtml(name)}</a></h2>\n<ul>${operations
    .map(({ id, summary }) => `<li><a href="#${id}">${escapeHtml(summary)}</a></li>`)
    .join('')}</ul>`

const renderTag = ({ name, description, operations }: TagRow, resolve: Resolve): string =>
  `<h2 id="tag-${name}">${escapeHtml(name)}</h2>\n<p>${renderText(description)}</p>\n${operations
    .map((operation) => renderOperation(operation, resolve))
    .join('\n')}`

function renderOperation(operation: OperationRow, resolve: Resolve): string {
  const { id, method, path, variants, summary, description, isPublic, parameters, bodies, responses } = operation
  const also = variants.map((variant) => `<code id="${variant.id}">${method} ${escapeHtml(variant.path)}</code>`)
  const parts = [
    `<h3><a href="#${id}">${escapeHtml(summary)}</a></h3>`,
    `<p class="route"><code>${method} ${escapeHtml(path)}</code></p>`,
    also.length > 0 && `<p class="dim">Also ${also.join(' and ')}</p>`,
    description !== '' && `<p>${renderText(description)}</p>`,
    isPublic && '<p class="dim">Needs no key.</p>',
    parameters.length > 0 && `<h4>Parameters</h4>${renderTable(parameters)}`,
    ...bodies.map(
      (body) => `<h4>Request body, <code>${escapeHtml(body.mediaType)}</code></h4>${renderTable(body.fields)}`,
    ),
    `<h4>Request</h4><pre>${escapeHtml(formatRequest(operation, resolve))}</pre>`,
    ...responses.map(
      ({ status, description: text, bodies: contents }) =>
        `<h4>${escapeHtml(status)}</h4><p>${renderText(text)}</p>${contents
          .map((body) => renderResponse(body, resolve))
          .join('')}`,
    ),
  ]
  return `<section id="${id}">\n${parts.filter((part) => part !== false).join('\n')}\n</section>`
}

function renderResponse(body: BodyRow, resolve: Resolve): string {
  const { mediaType, schema, fields } = body
  if (mediaType !== 'application/json') return `<p class="dim"><code>${escapeHtml(mediaType)}</code></p>`
  const example = escapeHtml(JSON.stringify(buildExample(schema, resolve), undefined, 2))
  return `<details><summary><code>${escapeHtml(mediaType)}</code></summary>${renderTable(fields)}<pre>${example}</pre></details>`
}

function renderTable(rows: readonly (FieldRow | ParameterRow)[]): string {
  if (rows.length === 0) return ''
  const lines = rows.map((row) => {
    const where = 'location' in row ? `${row.location}, ` : ''
    const type = `${where}${row.type}${row.isRequired ? ', required' : ''}`
    return `<tr><td><code>${escapeHtml(row.name)}</code></td><td>${escapeHtml(type)}</td><td>${renderText(row.description)}</td></tr>`
  })
  return `<div class="tables"><table><thead><tr><th>name<th>type<th>effect</thead><tbody>${lines.join('')}</tbody></table></div>`
}

/** Formats a request as a curl command with an example of its body. */
function formatRequest({ method, path, parameters, bodies }: OperationRow, resolve: Resolve): string {
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => pathExamples[name] ?? name)
  const query = parameters
    .filter(({ location, isRequired }) => location === 'query' && isRequired)
    .map(({ name }) => `${name}=…`)
  const target = [`http://127.0.0.1:4848${url}`, ...(query.length > 0 ? [query.join('&')] : [])].join('?')
  const body = bodies.find(({ mediaType }) => mediaType === 'application/json')
  const words = ['curl', ...(method === 'GET' || body !== undefined ? [] : ['-X', method]), `'${target}'`]
  if (body === undefined) return [...words, ...(bodies.length > 0 ? ['-F', 'file=@notes.txt'] : [])].join(' ')
  const example = JSON.stringify(buildExample(body.schema, resolve, 1)).replaceAll("'", "'\\''")
  return `${words.join(' ')} -H 'content-type: application/json' \\\n  -d '${example}'`
}

const pathExamples: Readonly<Record<string, string>> = { key: 'acme:ann', scope: 'acme' }

/** Renders a description, in which backquotes mark code. */
const renderText = (text = ''): string => escapeHtml(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>')
