import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'
import type { Memory } from '../memory.ts'
import { formatCount } from '../text/formatCount.ts'
import { formatTable, stripControlCharacters } from './output.ts'

export type ChatSessionOptions = {
  /** Write one JSON object per turn instead of text. */
  readonly json: boolean
  /** Show the receipt of every turn. */
  readonly receipt: boolean
  readonly write: (text: string) => void
}

const commands: Readonly<Record<string, string>> = {
  '/receipt': 'show the receipt of the last turn',
  '/forget': 'delete this session',
  '/help': 'list the commands',
  '/quit': 'exit',
}

/** Chat between the user of a terminal and a model, line by line. */
export class ChatSession {
  private readonly memory: Memory
  private readonly model: Model
  private readonly key: Key
  private readonly options: ChatSessionOptions
  private ledger: Ledger | undefined
  private replyAbort: AbortController | undefined

  constructor(memory: Memory, model: Model, key: Key, options: ChatSessionOptions) {
    this.memory = memory
    this.model = model
    this.key = key
    this.options = options
  }

  /** Handles one line of input: a message or a slash command. */
  async handleLine(line: string): Promise<'quit' | 'continue'> {
    const text = line.trim()
    if (text === '/quit') return 'quit'
    if (/^\/[a-z]+$/.test(text)) await this.runCommand(text)
    else if (text !== '') await this.sendMessage(line)
    return 'continue'
  }

  /** Aborts the reply that is being streamed. Returns false if there is none. */
  abortReply(): boolean {
    this.replyAbort?.abort()
    return this.replyAbort !== undefined
  }

  private async sendMessage(content: string): Promise<void> {
    await this.memory.append(this.key, [{ role: 'user', content }])
    const { messages, ledger } = await this.memory.context(this.key)
    this.ledger = ledger
    this.replyAbort = new AbortController()
    const chunks: string[] = []
    try {
      for await (const chunk of this.model.reply({ messages }, this.replyAbort.signal)) {
        chunks.push(chunk)
        if (!this.options.json) this.options.write(stripControlCharacters(chunk))
      }
    } finally {
      this.replyAbort = undefined
      if (!this.options.json && chunks.length > 0) this.options.write('\n')
    }
    const reply = chunks.join('')
    await this.memory.append(this.key, [{ role: 'assistant', content: reply }])
    if (this.options.json) this.writeJson({ reply, ledger })
    else if (this.options.receipt) this.options.write(`${formatReceipt(ledger)}\n`)
  }

  private async runCommand(command: string): Promise<void> {
    if (command === '/receipt') return this.showReceipt()
    if (command === '/forget') return this.forget()
    if (command !== '/help')
      throw new MemoryError('bad-option', `Unknown command ${command}. Type /help to list the commands.`, {
        param: command,
      })
    if (this.options.json) return this.writeJson({ commands })
    for (const [name, description] of Object.entries(commands)) this.options.write(`${name.padEnd(9)} ${description}\n`)
  }

  private showReceipt(): void {
    if (this.options.json) this.writeJson({ ledger: this.ledger ?? null })
    else this.options.write(this.ledger === undefined ? 'No turns yet.\n' : `${formatReceipt(this.ledger)}\n`)
  }

  private async forget(): Promise<void> {
    const forgotten = await this.memory.forget({ key: formatKey(this.key) })
    this.ledger = undefined
    const count = forgotten.sessions.reduce((sum, session) => sum + session.entries.length, 0)
    if (this.options.json) this.writeJson({ forgotten })
    else this.options.write(`Deleted ${formatCount(count, 'entry', 'entries')}.\n`)
  }

  private writeJson(value: unknown): void {
    this.options.write(`${JSON.stringify(value)}\n`)
  }
}

const receiptColumns = ['band', 'entries', 'count', 'verdict', 'tokens', 'why']
const numericReceiptColumns: ReadonlySet<number> = new Set([2, 4])

function formatReceipt({ lines, spent, budget, cacheable, degraded }: Ledger): string {
  const rows = lines.map(({ band, entries, count, verdict, tokens, why }) => [
    band,
    formatEntries(entries),
    `${count}`,
    verdict,
    `${tokens}`,
    why,
  ])
  return [
    ...formatTable([receiptColumns, ...rows], numericReceiptColumns),
    `${spent} of ${budget} tokens, ${cacheable.tokens} cacheable`,
    ...degraded.map(({ message }) => message),
  ].join('\n')
}

function formatEntries(entries: Ledger['lines'][number]['entries']): string {
  if (entries === null) return '-'
  return entries[0] === entries[1] ? entries[0] : `${entries[0]}-${entries[1]}`
}
