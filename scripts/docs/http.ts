import { buildOpenApi } from '../../src/server/openapi/openapi.ts'
import {
  type FieldRow,
  listOperations,
  type OperationRow,
  type ParameterRow,
} from '../../src/server/openapi/operationList.ts'

const introduction = `# HTTP reference

Every route of \`threadkeep serve\`. \`npm run docs\` generates this page from the OpenAPI document. A running server shows the
same with examples at \`/docs\`, and as JSON at \`/openapi.json\`. [Server](../server.md) explains headers, clients and receipts;
[Errors](errors.md) lists the codes.
`

/** Renders the reference of all routes as Markdown. */
export function renderHttp(): string {
  const sections = listOperations(buildOpenApi()).map(
    ({ name, description, operations }) =>
      `## ${name}\n\n${description}\n\n${operations.map((operation) => renderOperation(operation)).join('\n')}`,
  )
  return `${[introduction, ...sections].join('\n').trimEnd()}\n`
}

function renderOperation(operation: OperationRow): string {
  const { method, path, variants, summary, description, isPublic, parameters, bodies, responses } = operation
  const success = responses.filter(({ status }) => /^[123]\d\d$/.test(status) || status === '503')
  const parts = [
    `### ${summary}\n`,
    `\`${method} ${path}\`${variants.map((variant) => `, \`${method} ${variant.path}\``).join('')}\n`,
    ...(description === '' ? [] : [`${description}\n`]),
    ...(isPublic ? ['Needs no key.\n'] : []),
    ...renderTable(
      'parameter',
      parameters.filter(({ name }) => name !== 'x-request-id'),
    ),
    ...bodies.flatMap(({ mediaType, fields }) =>
      fields.length > 0
        ? [`Body, \`${mediaType}\`:\n`, ...renderTable('field', fields)]
        : [`Body: \`${mediaType}\`.\n`],
    ),
    ...success.flatMap(({ status, description: text, bodies: contents }) => {
      const [first] = contents
      const types = contents.map(({ mediaType }) => `\`${mediaType}\``).join(' or ')
      return [`**${status}** ${text}${types === '' ? '' : ` ${types}`}\n`, ...renderTable('field', first?.fields ?? [])]
    }),
  ]
  return parts.join('\n')
}

function renderTable(title: string, rows: readonly (FieldRow | ParameterRow)[]): readonly string[] {
  if (rows.length === 0) return []
  const lines = rows.map((row) => {
    const where = 'location' in row ? `${row.location}, ` : ''
    return `| \`${row.name}\` | ${where}${escapeCell(row.type)}${row.isRequired ? ', required' : ''} | ${escapeCell(row.description)} |`
  })
  return [[`| ${title} | type | effect |`, '| --- | --- | --- |', ...lines, ''].join('\n')]
}

const escapeCell = (text: string): string => text.replaceAll('|', '\\|')
