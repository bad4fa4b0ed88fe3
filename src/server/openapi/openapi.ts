import { readFileSync } from 'node:fs'
import { addExamples } from './examples.ts'
import { memorySchemas } from './memorySchemas.ts'
import { type OperationName, operations } from './operations.ts'
import { type ParameterName, parameters, responseHeaders } from './parameters.ts'
import { protocolSchemas } from './protocolSchemas.ts'
import { reportSchemas } from './reportSchemas.ts'
import { errorRefs, errorResponses, type Operation } from './responses.ts'
import { type Route, routes } from './routes.ts'
import { ref, type Schema } from './schema.ts'

type Manifest = { readonly version: string; readonly description: string }
const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as Manifest

/** Builds the OpenAPI 3.1 document of all routes. */
export function buildOpenApi(): Schema {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Threadkeep',
      version: manifest.version,
      summary: manifest.description,
      description:
        "Without configured Threadkeep keys, no key is required, and a client's own key is sent to the upstream.",
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    tags,
    security: [{ bearer: [] }, { apiKey: [] }, { ownHeader: [] }, {}],
    paths: buildPaths(),
    components: {
      schemas: addExamples({ ...memorySchemas, ...reportSchemas, ...protocolSchemas }),
      parameters,
      headers: responseHeaders,
      responses: errorResponses,
      securitySchemes,
    },
  }
}

const tags = [
  {
    name: 'Models',
    description:
      'Model requests with memory. All other paths under `/v1` and `/v1/{key}`, such as files, batches, images and audio, are forwarded to an upstream with any method, and responses are relayed, both without being read.',
  },
  { name: 'Conversations', description: "OpenAI's conversations; each is a session." },
  { name: 'Sessions', description: 'Sessions and their entries.' },
  { name: 'Scopes', description: 'Tenants: their knowledge, files and usage.' },
  { name: 'Receipts', description: 'Explanations of replies.' },
  { name: 'Operator', description: 'Health, metrics and documentation.' },
]

const keyDescription = 'A Threadkeep key, `tk_…`, created with `threadkeep keys create`.'
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: keyDescription },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description: `${keyDescription} For Anthropic's clients.`,
  },
  ownHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'x-threadkeep-api-key',
    description: `${keyDescription} Leaves \`authorization\` free for the upstream's key.`,
  },
}

function buildPaths(): Readonly<Record<string, Schema>> {
  const paths: Record<string, Schema> = {}
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describeRoute(route) }
  return paths
}

function describeRoute({ path, name }: Route): Schema {
  const operation: Operation = operations[name]
  const { tag, summary, description, body, isPublic = false } = operation
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter as ParameterName)
  const inHeader: readonly ParameterName[] = path.startsWith('/v1/') && !inPath.includes('key') ? ['keyHeader'] : []
  const names = [...inPath, ...inHeader, ...(operation.parameters ?? []), 'requestId']
  return {
    operationId: operationId(path, name),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(isPublic ? { security: [] } : {}),
    parameters: names.map((parameter) => ({ $ref: `#/components/parameters/${parameter}` })),
    ...(body === undefined ? {} : { requestBody: typeof body === 'string' ? jsonBody(body) : body }),
    responses: { ...operation.responses, ...errorRefs(operation) },
  }
}

const jsonBody = (schema: string): Schema => ({
  required: true,
  content: { 'application/json': { schema: ref(schema) } },
})

/** Ids are unique; the route with the key in its path has the plain name. */
function operationId(path: string, name: OperationName): string {
  if (path.startsWith('/v1/{key}/v1/')) return `${name}UnderV1`
  return path.startsWith('/v1/') && !path.startsWith('/v1/{key}/') ? `${name}ByHeader` : name
}
