import { readFileSync } from 'node:fs'
import { accountSchemas } from './accounts.ts'
import { entrySchemas } from './entries.ts'
import { headers, type ParameterName, parameters } from './headers.ts'
import { modelOperations } from './models.ts'
import { errorResponses, errorsOf, type Operation } from './operation.ts'
import { operatorOperations } from './operator.ts'
import { protocolSchemas } from './protocols.ts'
import { restOperations } from './rest.ts'
import { type OperationName, type Route, routes } from './routes.ts'
import { ref, type Schema } from './schema.ts'

type Manifest = { readonly version: string; readonly description: string }
const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as Manifest

const operations: Readonly<Record<OperationName, Operation>> = {
  ...modelOperations,
  ...restOperations,
  ...operatorOperations,
}

/** The description of everything the server answers, in OpenAPI 3.1. */
export function openapi(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Threadkeep',
      version: manifest.version,
      summary: manifest.description,
      description:
        "Without Threadkeep keys configured, no key is asked for, and a key of the client's own goes to the model server.",
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    tags,
    security: [{ bearer: [] }, { apiKey: [] }, { ownHeader: [] }, {}],
    paths: paths(),
    components: {
      schemas: { ...entrySchemas, ...accountSchemas, ...protocolSchemas },
      parameters,
      headers,
      responses: errorResponses,
      securitySchemes,
    },
  }
}

const tags = [
  { name: 'Models', description: 'Requests for a model, with memory in between.' },
  { name: 'Conversations', description: "OpenAI's conversations, which are sessions under another name." },
  { name: 'Sessions', description: 'What memory holds of conversations.' },
  { name: 'Scopes', description: 'What memory holds of tenants.' },
  { name: 'Receipts', description: 'What answers were made from.' },
  { name: 'Operator', description: 'For whoever runs the server.' },
]

const key = 'A Threadkeep key, `tk_…`, as `threadkeep keys create` makes it.'
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: key },
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: `${key} For Anthropic's clients.` },
  ownHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-threadkeep-api-key',
    description: `${key} Leaves \`authorization\` free for the model server's key.`,
  },
}

/** The routes by their addresses and methods, as the document wants them. */
function paths(): Readonly<Record<string, Schema>> {
  const found: Record<string, Schema> = {}
  for (const route of routes)
    found[route.path] = { ...found[route.path], [route.method.toLowerCase()]: described(route) }
  return found
}

function described({ path, name }: Route): Schema {
  const operation = operations[name]
  const { tag, summary, description, takes = [], body, answers, isOpen = false } = operation
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter as ParameterName)
  const inHeader: readonly ParameterName[] = path.startsWith('/v1/') && !inPath.includes('key') ? ['keyHeader'] : []
  return {
    operationId: idOf(path, name),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(isOpen ? { security: [] } : {}),
    parameters: [...inPath, ...inHeader, ...takes, 'requestId'].map((parameter) => ({
      $ref: `#/components/parameters/${parameter}`,
    })),
    ...(body === undefined
      ? {}
      : {
          requestBody:
            typeof body === 'string'
              ? { required: true, content: { 'application/json': { schema: ref(body) } } }
              : body,
        }),
    responses: { ...answers, ...errorsOf(operation) },
  }
}

/** An operation has several addresses; the one with the key in it has the plain name. */
function idOf(path: string, name: OperationName): string {
  if (path.startsWith('/v1/{key}/v1/')) return `${name}BehindVersion`
  return path.startsWith('/v1/') && !path.startsWith('/v1/{key}/') ? `${name}ByHeader` : name
}
