import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { fileTools } from './files.ts'
import { graphTools } from './graph.ts'
import { toClientSchema } from './jsonSchema.ts'
import { messageTools } from './messages.ts'
import { referenceTools } from './reference.ts'
import { sessionTools } from './sessions.ts'
import type { Tool } from './tool.ts'

const workspace = z.string().max(64).optional().describe("The workspace; the client's default workspace if omitted.")

/** Tool with the schemas clients see. */
export type RegisteredTool = Tool & {
  readonly schemas: { readonly input: StandardSchemaWithJSON; readonly output: StandardSchemaWithJSON }
}

/** Prepares a tool for registration. Tools other than those of the reference server get a `workspace` argument. */
export function prepareTool(tool: Tool): RegisteredTool {
  // Strict, so that a misspelled argument is an error. The reference server ignores unknown arguments.
  const input = tool.isReferenceTool === true ? tool.input : tool.input.extend({ workspace }).strict()
  // The reference server publishes draft-07 schemas, and its tools must be identical here.
  const dialect = tool.isReferenceTool === true ? 'draft-07' : 'draft-2020-12'
  return {
    ...tool,
    input,
    schemas: { input: toClientSchema(input, dialect), output: toClientSchema(tool.output, dialect) },
  }
}

/** All tools in listing order. */
export const registeredTools: readonly RegisteredTool[] = [
  ...sessionTools,
  ...messageTools,
  ...referenceTools,
  ...graphTools,
  ...fileTools,
].map(prepareTool)
