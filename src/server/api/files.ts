import { type Key, parseKey } from '../../domain/key.ts'
import type { Upload } from '../../files/kind.ts'
import { readBytes, readUpload } from '../http/body.ts'
import { HttpError, notFound } from '../http/httpError.ts'
import { type Handlers, type RequestContext, requireOwnKey, sendJson } from '../http/requestContext.ts'
import { scopeHandler } from './access.ts'
import { checkQuery, readCursor, readFlag, readLimit } from './input.ts'

/** Maximum size of a form besides its file. */
const maxFormOverheadBytes = 1_048_576

/** Files of tenants. Sessions have none; the path by session key exists to say so. */
export const fileRoutes: Handlers = {
  'POST /api/sessions/{key}/files': (context) => uploadFile(context, context.params.key ?? ''),
  'POST /api/scopes/{scope}/files': (context) => uploadFile(context, context.params.scope ?? ''),
  'GET /api/scopes/{scope}/files': scopeHandler(['after', 'limit'], async ({ server, client, query }, scope) => {
    const options = { after: String(readCursor(query)), limit: readLimit(query) }
    sendJson(client.response, 200, await server.files.list(scope, options))
  }),
  'GET /api/scopes/{scope}/files/{file}': scopeHandler([], async ({ server, client, params: { file = '' } }, scope) => {
    const info = await server.files.get(scope, file)
    if (info === undefined) throw notFound()
    sendJson(client.response, 200, info)
  }),
  'GET /api/scopes/{scope}/files/{file}/text': scopeHandler(
    [],
    async ({ server, client, params: { file = '' } }, scope) => {
      if ((await server.files.get(scope, file)) === undefined) throw notFound()
      const text = Buffer.from(await server.files.text(scope, file))
      // `nosniff`: browsers must not render uploaded text as HTML.
      const headers = {
        'content-type': 'text/plain; charset=utf-8',
        'content-length': text.length,
        'x-content-type-options': 'nosniff',
      }
      client.response.writeHead(200, headers).end(text)
    },
  ),
  'DELETE /api/scopes/{scope}/files/{file}': scopeHandler(
    [],
    async ({ server, client, params: { file = '' } }, scope) => {
      if (!(await server.files.remove(scope, file))) throw notFound()
      client.response.writeHead(204).end()
    },
  ),
}

async function uploadFile(context: RequestContext, keyText: string): Promise<void> {
  const { server, client, query } = context
  const key = requireOwnKey(context, parseKey(keyText))
  checkQuery(query, ['wait'])
  const scope = tenantOf(key)
  const waitForIndex = readFlag(query, 'wait', true)
  const file = await readFile(context)
  if (waitForIndex) sendJson(client.response, 201, await server.files.add(scope, file))
  else sendJson(client.response, 202, await server.files.addInBackground(scope, file))
}

function tenantOf(key: Key): string {
  if (key.id === '') return key.scope
  throw new HttpError(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'key')
}

/** Reads a file from a form, or from the whole body with its name in a header. */
async function readFile({ server, request }: RequestContext): Promise<Upload> {
  const contentType = request.headers['content-type'] ?? ''
  const maxBytes = server.maxBytes.file
  if (!/^multipart\//i.test(contentType)) {
    const name = readFileName(request.headers['x-filename'])
    return { ...mediaType(contentType), name, bytes: await readBytes(request, maxBytes) }
  }
  const { name, type, bytes } = await readUpload(request, maxBytes + maxFormOverheadBytes)
  return { ...mediaType(type ?? ''), name, bytes }
}

const mediaType = (type: string): Pick<Upload, 'type'> => (type === '' ? {} : { type })

function readFileName(header: string | readonly string[] | undefined): string {
  const name = typeof header === 'string' ? decodePercent(header) : ''
  if (name.trim() !== '' && !/[\p{C}/\\]/u.test(name)) return name
  const message =
    'The name of the file is missing or invalid. Send it in the header x-filename, such as handbook.pdf, percent-encoded where it is not ASCII; or send a form.'
  throw new HttpError(400, 'missing_name', message, 'x-filename')
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
