import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Parser } from 'htmlparser2'
import { describe, expect, it } from 'vitest'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { docsPolicy, renderDocsPage } from '../../src/server/openapi/docsPage.ts'
import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import { routes } from '../../src/server/openapi/routes.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { startServer } from './start.ts'

const createPath = createTempPaths()

type Element = { readonly name: string; readonly attributes: Readonly<Record<string, string>> }
type Page = { readonly elements: readonly Element[]; readonly text: string; readonly unclosed: readonly string[] }

const voidElements = new Set(['meta', 'th'])

function parsePage(html: string): Page {
  const elements: Element[] = []
  const open: string[] = []
  let text = ''
  const parser = new Parser({
    onopentag(name, attributes) {
      elements.push({ name, attributes })
      open.push(name)
    },
    onclosetag: (name) => void open.splice(open.lastIndexOf(name), 1),
    ontext(data) {
      text += data
    },
  })
  parser.end(html)
  return { elements, text, unclosed: open.filter((name) => !voidElements.has(name)) }
}

const html = renderDocsPage(buildOpenApi())
const page = parsePage(html)
const attributesOf = (name: string): readonly string[] =>
  page.elements.flatMap(({ attributes }) => (attributes[name] === undefined ? [] : [attributes[name]]))

describe('the page of the HTTP reference', () => {
  it('has an anchor for every operation, and every link leads to one', () => {
    const ids = attributesOf('id')
    const { paths } = buildOpenApi() as { paths: Record<string, Record<string, { operationId: string }>> }
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods).map((one) => one.operationId))
    expect(operations).toHaveLength(routes.length)
    expect(operations.filter((id) => !ids.includes(id))).toEqual([])
    expect(ids).toEqual([...new Set(ids)])
    const links = attributesOf('href').filter((href) => href !== 'openapi.json')
    expect(links.filter((href) => !href.startsWith('#') || !ids.includes(href.slice(1)))).toEqual([])
  })

  it('loads nothing, runs nothing and closes what it opens', () => {
    const names = new Set(page.elements.map(({ name }) => name))
    for (const name of ['script', 'img', 'link', 'iframe', 'object', 'form', 'base']) expect(names).not.toContain(name)
    expect(attributesOf('src')).toEqual([])
    expect(attributesOf('style')).toEqual([])
    expect(html).not.toMatch(/@import|url\(|\son\w+=/)
    expect(page.unclosed).toEqual([])
  })

  it('allows exactly its own style sheet', () => {
    const style = /<style>(.*?)<\/style>/s.exec(html)?.[1] ?? ''
    expect(docsPolicy).toContain(`style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`)
    expect(docsPolicy).toContain("default-src 'none'")
    expect(docsPolicy).not.toContain('unsafe')
    expect(style).toContain('color-scheme: light dark')
  })

  it('shows a request and a response of each operation', () => {
    expect(page.text).toContain("curl 'http://127.0.0.1:4848/v1/acme:ann/chat/completions'")
    expect(page.text).toContain('"object": "chat.completion"')
    const sections = page.elements.filter(({ name }) => name === 'section')
    expect(html.match(/<pre>curl /g)).toHaveLength(sections.length)
  })

  it('escapes text of the document', () => {
    const hostile = '<script>alert(1)</script>" onclick="x'
    const operation = { operationId: 'x', tags: ['T'], summary: hostile, description: hostile, responses: {} }
    const rendered = renderDocsPage({
      info: { title: hostile, version: '1', summary: hostile, description: hostile },
      tags: [{ name: 'T', description: hostile }],
      paths: { '/x': { get: operation } },
    })
    expect(
      parsePage(rendered).elements.filter(({ name, attributes }) => name === 'script' || attributes.onclick),
    ).toEqual([])
    expect(parsePage(rendered).text).toContain(hostile)
  })
})

describe('requests of the page', () => {
  it('with an example as their body › sent to the server › are accepted', async () => {
    await using server = await startServer()
    const { schemas } = (buildOpenApi() as { components: { schemas: Record<string, { examples?: unknown[] }> } })
      .components
    const requests: Readonly<Record<string, string>> = {
      ChatRequest: 'POST /v1/acme:ann/chat/completions',
      ResponseRequest: 'POST /v1/acme:ann/responses',
      MessagesRequest: 'POST /v1/acme:ann/messages',
      NewSession: 'POST /api/sessions',
      NewKnowledge: 'POST /api/scopes/acme/knowledge',
      RecordUpdate: 'POST /api/sessions/acme:ann/record',
    }
    const statuses: unknown[] = []
    for (const [name, request] of Object.entries(requests))
      statuses.push([name, (await server.requestJson(request, schemas[name]?.examples?.[0])).status])
    expect(statuses).toEqual(Object.keys(requests).map((name) => [name, /^New/.test(name) ? 201 : 200]))
  })
})

describe('GET /docs', () => {
  it('without a key on a server with keys › answers the page with its policy', async () => {
    const credentials = new Credentials(join(createPath(), '..', 'keys.json'))
    await credentials.create({ scopes: ['acme'] }, 0)
    await using server = await startServer({ credentials })
    const response = await fetch(`${server.url}/docs`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(response.headers.get('content-security-policy')).toBe(docsPolicy)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await response.text()).toBe(html)
    expect((await fetch(`${server.url}/docs?x=1`)).status).toBe(400)
    expect((await fetch(`${server.url}/docs`, { method: 'POST' })).status).toBe(405)
  })
})
