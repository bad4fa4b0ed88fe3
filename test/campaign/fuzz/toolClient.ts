import type { Client } from '@modelcontextprotocol/client'
import { connectHttp } from '../../mcp/harness.ts'
import { canaries, type ToolStep } from './input.ts'
import { hasPath, type Problem } from './oracle.ts'
import type { Target } from './target.ts'

/** An MCP client of acme. */
export class ToolClient {
  private readonly client: Client
  readonly folder: string

  private constructor(client: Client, folder: string) {
    this.client = client
    this.folder = folder
  }

  static async connect({ url, keys, folder }: Target): Promise<ToolClient> {
    const { client } = await connectHttp(url, '2026-07-28', keys.acme)
    return new ToolClient(client, folder)
  }

  /** Calls a tool. Errors of the tool and of the protocol are expected; internal errors are not. */
  async call(step: ToolStep): Promise<readonly Problem[]> {
    const text = await this.client
      .callTool({ name: step.name, arguments: JSON.parse(step.arguments) as Record<string, unknown> })
      .then(
        (result) => JSON.stringify(result),
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
    const problems: Problem[] = []
    if (/Internal error|fetch failed|terminated/.test(text))
      problems.push({ kind: `tool error ${step.name}`, detail: text.slice(0, 300) })
    if (hasPath(this, text)) problems.push({ kind: `path in ${step.name}`, detail: text.slice(0, 300) })
    if (text.includes(canaries.globex) && !step.arguments.includes(canaries.globex))
      problems.push({ kind: `text of globex in ${step.name}`, detail: text.slice(0, 300) })
    return problems
  }

  close(): Promise<void> {
    return this.client.close()
  }
}
