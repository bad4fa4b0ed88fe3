import type { Message, Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import { LineAnalyzer } from './conversationLines.ts'
import { isWork } from './isWork.ts'
import { selectPassagesInSteps } from './selectPassages.ts'

/** The part of a message that is shown. */
export type MessageExcerpt = { readonly message: Message; readonly text: string; readonly isWhole: boolean }

/** Chooses what is shown of a session in which people work on files. */
export type WorkSelection = {
  /** True if the messages are work rather than conversation, and the question is not about what was said before. */
  isWork(messages: readonly Message[], question: string): boolean
  /** Selects excerpts of at most `budget` tokens, oldest first: the newest text, and lines that work refers to. */
  select(messages: readonly Message[], question: string, budget: Tokens): Work<readonly MessageExcerpt[]>
  /** Forgets all text that it has analysed. */
  clear(): void
}

const toSelectable = (message: Message) => ({ role: message.role, text: message.content, message })

export function createWorkSelection(tokenizer: Tokenizer): WorkSelection {
  let analyzer = new LineAnalyzer(tokenizer)
  return {
    isWork: (messages, question) => isWork(messages.map(toSelectable), question),
    *select(messages, question, budget) {
      const overheadTokens = (index: number): Tokens => overheadOf(messages[index] as Message, tokenizer)
      const options = { budget, question, overheadTokens }
      const excerpts = yield* selectPassagesInSteps(messages.map(toSelectable), options, analyzer)
      return excerpts.map(({ message: { message }, text, isWhole }) => ({ message, text, isWhole }))
    },
    clear: () => {
      analyzer = new LineAnalyzer(tokenizer)
    },
  }
}

/** Tokens of the speaker, the line break and the chat format. */
const overheadOf = ({ name }: Message, tokenizer: Tokenizer): Tokens =>
  (name === undefined ? 1 : tokenizer.count(name)) + 3 + tokenizer.overhead.message
