import { completable, type GetPromptResult, type ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { MemoryError } from '../domain/error.ts'
import { callOf } from './call.ts'
import { idsLike, workspacesLike } from './complete.ts'
import { answering } from './failure.ts'
import type { Mcp } from './server.ts'
import type { Tool } from './tool.ts'
import { sessionTools } from './tools/sessions.ts'

/** What a client offers its user to begin or to end a chat with. */
export function addPrompts(mcp: Mcp): void {
  const workspace = completable(z.string().describe('The workspace; the usual one when left out.'), (begun) =>
    workspacesLike(mcp, begun),
  ).optional()
  const session = completable(
    z.string().describe('The session to go on with; the newest when left out.'),
    (begun, about) => idsLike(mcp, about?.arguments?.workspace, begun),
  ).optional()
  const budget = z.string().describe('How many tokens of it at most, such as 4000.').optional()
  mcp.server.registerPrompt(
    'continue-session',
    {
      title: 'Continue a session',
      description: 'Begins a chat with what is needed to go on where an earlier one ended.',
      argsSchema: z.object({ session, budget, workspace }),
    },
    (given, context) => answering(mcp.onFault, () => continued(mcp, given, context)),
  )
  mcp.server.registerPrompt(
    'handoff-summary',
    {
      title: 'Hand over this chat',
      description: 'Has the model sum up this chat and save it, so that it can go on in a new one.',
      argsSchema: z.object({
        focus: z.string().describe('What matters most for whoever goes on.').optional(),
        workspace,
      }),
    },
    (given) => said('Summary and hand-over of this chat', summaryRequest(given)),
  )
}

type Wanted = {
  readonly session?: string | undefined
  readonly budget?: string | undefined
  readonly workspace?: string | undefined
}

/** The prompt says what the tool says. */
const restoring = sessionTools.find(({ name }) => name === 'restore_session') as Tool

async function continued(
  mcp: Mcp,
  { session, budget, workspace }: Wanted,
  context: ServerContext,
): Promise<GetPromptResult> {
  const call = callOf(mcp, workspace, context)
  const wanted = {
    ...(session === undefined ? {} : { sessionId: session }),
    ...(budget === undefined ? {} : { tokenBudget: tokensIn(budget) }),
  }
  const { text } = await mcp.underway.run(() => restoring.run(wanted, call))
  return said('What an earlier chat needs to go on', text)
}

function tokensIn(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text)
  throw new MemoryError(
    'bad-option',
    `budget is ${JSON.stringify(text.slice(0, 40))}; it must be a whole number of tokens, such as 4000.`,
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
  const about = focus === undefined ? '' : ` What matters most: ${focus}.`
  const where = workspace === undefined ? '' : `, with workspace ${JSON.stringify(workspace)}`
  return [
    `This chat is to go on in a new one. Write down what whoever goes on must know, in at most 300 words.${about}`,
    'Say what the user wants, what is decided and why, what is done, what is open, and which files, names, numbers and commands matter. Write nothing that was not said.',
    `Then call save_session${where} with the messages of this chat, a title, and what you wrote as contextItems: task for what is open, concept for what is decided, code and file for what was made, each with its importance from 1 to 10. Tell the user the id of the session.`,
  ].join('\n\n')
}

const said = (description: string, text: string): GetPromptResult => ({
  description,
  messages: [{ role: 'user', content: { type: 'text', text } }],
})
