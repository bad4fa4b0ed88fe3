import { type Key, parseKey } from '../../domain/key.ts'
import type { Upload } from '../../files/kind.ts'
import { readBytes, readUpload } from '../http/body.ts'
import { notFound, Refusal } from '../http/httpError.ts'
import { type Exchange, type Handlers, own, send } from '../http/requestContext.ts'
import { checkQuery, flagIn, limitIn, placeIn } from './query.ts'
import { ofScope } from './scope.ts'

/** What a form may hold around its file. */
const around = 1_048_576

/** The files of tenants. A session has none, and there are two addresses under which one might try. */
export const files: Handlers = {
  'POST /api/sessions/{key}/files': (exchange) => upload(exchange, exchange.params.key ?? ''),
  'POST /api/scopes/{scope}/files': (exchange) => upload(exchange, exchange.params.scope ?? ''),
  'GET /api/scopes/{scope}/files': ofScope(['after', 'limit'], async ({ house, client, query }, scope) => {
    send(client.response, 200, await house.files.list(scope, { after: String(placeIn(query)), limit: limitIn(query) }))
  }),
  'GET /api/scopes/{scope}/files/{file}': ofScope([], async ({ house, client, params: { file = '' } }, scope) => {
    const info = await house.files.get(scope, file)
    if (info === undefined) throw notFound()
    send(client.response, 200, info)
  }),
  'GET /api/scopes/{scope}/files/{file}/text': ofScope([], async ({ house, client, params: { file = '' } }, scope) => {
    if ((await house.files.get(scope, file)) === undefined) throw notFound()
    const text = Buffer.from(await house.files.text(scope, file))
    // What somebody has uploaded is for reading: no browser is to take it for a page.
    const headers = {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': text.length,
      'x-content-type-options': 'nosniff',
    }
    client.response.writeHead(200, headers).end(text)
  }),
  'DELETE /api/scopes/{scope}/files/{file}': ofScope([], async ({ house, client, params: { file = '' } }, scope) => {
    if (!(await house.files.remove(scope, file))) throw notFound()
    client.response.writeHead(204).end()
  }),
}

async function upload(exchange: Exchange, named: string): Promise<void> {
  const { house, client, query } = exchange
  const scope = tenantOf(own(exchange, parseKey(named)))
  checkQuery(query, ['wait'])
  const waits = flagIn(query, 'wait', true)
  const file = await fileIn(exchange)
  if (waits) send(client.response, 201, await house.files.add(scope, file))
  else send(client.response, 202, await house.files.begin(scope, file))
}

function tenantOf(key: Key): string {
  if (key.id === '') return key.scope
  throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'key')
}

/** The file a request brings: in a form, or as it is with its name in a header. */
async function fileIn({ house, request }: Exchange): Promise<Upload> {
  const type = request.headers['content-type'] ?? ''
  if (!/^multipart\//i.test(type))
    return {
      ...typed(type),
      name: nameIn(request.headers['x-filename']),
      bytes: await readBytes(request, house.largest.file),
    }
  const { name, type: told, bytes } = await readUpload(request, house.largest.file + around)
  return { ...typed(told ?? ''), name, bytes }
}

const typed = (type: string): Pick<Upload, 'type'> => (type === '' ? {} : { type })

function nameIn(header: string | readonly string[] | undefined): string {
  const name = typeof header === 'string' ? decoded(header) : ''
  if (name.trim() !== '' && !/[\p{C}/\\]/u.test(name)) return name
  throw new Refusal(
    400,
    'missing_name',
    'The header x-filename must name the file, such as handbook.pdf, percent-encoded where it is not ASCII; or send a form.',
    'x-filename',
  )
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
