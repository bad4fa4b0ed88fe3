import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { shownSchema } from './schema.ts'
import type { Tool } from './tool.ts'
import { fileTools } from './tools/files.ts'
import { graphTools } from './tools/graph.ts'
import { referenceTools } from './tools/reference.ts'
import { sessionTools } from './tools/sessions.ts'
import { talkTools } from './tools/talk.ts'

const workspace = z
  .string()
  .max(64)
  .optional()
  .describe('The workspace this is about; the usual one of this client when left out.')

/** A tool with its schemas as clients are shown them. */
export type Offered = Tool & {
  readonly shown: { readonly input: StandardSchemaWithJSON; readonly output: StandardSchemaWithJSON }
}

/** A tool as it is offered; one that may be asked about any workspace takes its name. */
export function offered(tool: Tool): Offered {
  // A name that is mistyped would be passed over without a word; the reference server does pass it over.
  const input = tool.fixed === true ? tool.input : tool.input.extend({ workspace }).strict()
  // The reference server describes its tools in the older dialect, and what replaces it is to be the same to the letter.
  const dialect = tool.fixed === true ? 'draft-07' : 'draft-2020-12'
  return { ...tool, input, shown: { input: shownSchema(input, dialect), output: shownSchema(tool.output, dialect) } }
}

/** Every tool, in the order in which they are listed. */
export const tools: readonly Offered[] = [
  ...sessionTools,
  ...talkTools,
  ...referenceTools,
  ...graphTools,
  ...fileTools,
].map(offered)
