import { completable, type GetPromptResult, type ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { MemoryError, shortenText } from '../domain/error.ts'
import { completeSessionId, completeWorkspace, type McpContext } from './context.ts'
import { withProtocolErrors } from './errors.ts'
import { createInvocation } from './tools/call.ts'
import { strictObject } from './tools/schemas.ts'
import { sessionTools } from './tools/sessions.ts'
import type { Tool } from './tools/tool.ts'

/** Registers the prompts that start and end a chat. */
export function registerPrompts(mcp: McpContext): void {
  const workspace = completable(z.string().describe('The workspace; the default workspace if omitted.'), (prefix) =>
    completeWorkspace(mcp, prefix),
  ).optional()
  const session = completable(
    z.string().describe('The session to continue; the most recent if omitted.'),
    (prefix, context) => completeSessionId(mcp, context?.arguments?.workspace, prefix),
  ).optional()
  const budget = z.string().describe('The maximum number of tokens, such as 4000.').optional()
  mcp.server.registerPrompt(
    'continue-session',
    {
      title: 'Continue a session',
      description: 'Starts a chat with the context needed to continue an earlier one.',
      argsSchema: strictObject({ session, budget, workspace }),
    },
    (args, context) => withProtocolErrors(mcp.onError, () => continueSession(mcp, args, context)),
  )
  mcp.server.registerPrompt(
    'handoff-summary',
    {
      title: 'Hand over this chat',
      description: 'Asks the model to summarize this chat and save it, so that it can be continued in a new one.',
      argsSchema: strictObject({
        focus: z.string().describe('What matters most for the continuation.').optional(),
        workspace,
      }),
    },
    (args) => userPrompt('Summary and handover of this chat', summaryRequest(args)),
  )
}

type ContinueArgs = {
  readonly session?: string | undefined
  readonly budget?: string | undefined
  readonly workspace?: string | undefined
}

/** The prompt returns the text of the restore_session tool. */
const restoreSession = sessionTools.find(({ name }) => name === 'restore_session') as Tool

async function continueSession(
  mcp: McpContext,
  { session, budget, workspace }: ContinueArgs,
  context: ServerContext,
): Promise<GetPromptResult> {
  const invocation = createInvocation(mcp, workspace, context)
  const input = {
    ...(session === undefined ? {} : { sessionId: session }),
    ...(budget === undefined ? {} : { tokenBudget: parseBudget(budget) }),
  }
  const { text } = await mcp.inFlightCalls.run(() => restoreSession.run(input, invocation))
  return userPrompt('Context to continue an earlier chat', text)
}

function parseBudget(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text)
  throw new MemoryError(
    'bad-option',
    `budget is ${JSON.stringify(shortenText(text, 40))}; it must be a whole number of tokens, such as 4000.`,
    { param: 'budget' },
  )
}

function summaryRequest({
  focus,
  workspace,
}: {
  readonly focus?: string | undefined
  readonly workspace?: string | undefined
}): string {
  const focusText = focus === undefined ? '' : ` What matters most: ${focus}.`
  const workspaceText = workspace === undefined ? '' : `, with workspace ${JSON.stringify(workspace)}`
  return [
    `This chat will be continued in a new one. Summarize what is needed to continue it, in at most 300 words.${focusText}`,
    'State what the user wants, what is decided and why, what is done, what is open, and which files, names, numbers and commands matter. Write nothing that was not said.',
    `Then call save_session${workspaceText} with the messages of this chat, a title, and your summary as contextItems: task for what is open, concept for what is decided, code and file for what was made, each with its importance from 1 to 10. Tell the user the id of the session.`,
  ].join('\n\n')
}

const userPrompt = (description: string, text: string): GetPromptResult => ({
  description,
  messages: [{ role: 'user', content: { type: 'text', text } }],
})
