import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Ledger } from '../../domain/ledger.ts'
import type { Model } from '../../domain/ports.ts'
import type { ForgetTarget } from '../../memory/forgetTarget.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { formatCount } from '../../text/formatCount.ts'
import { formatMessages } from '../context.ts'
import { previewForget } from '../forget/preview.ts'
import { formatLines, formatStatement, type Line, stripControlCharacters } from '../terminal/output.ts'
import { formatReceipt } from '../terminal/receipt.ts'
import { formatTable } from '../terminal/table.ts'
import { WordWrap } from '../terminal/wordWrap.ts'
import { chatCommands } from './chatCommands.ts'

export type ChatSessionOptions = {
  /** Write one JSON object per turn instead of text. */
  readonly json: boolean
  /** Show the receipt of every turn. */
  readonly receipt: boolean
  readonly write: (text: string) => void
  /** Width at which replies are wrapped. Default: not at all. */
  readonly columns?: number
  /** Asks a user; absent in a pipe. */
  readonly confirm?: (question: string) => Promise<boolean>
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
  async handleLine(line: string): Promise<'exit' | 'continue'> {
    const text = line.trim()
    const [, command, argument = ''] = /^(\/[a-z]+)(?:\s(.*))?$/s.exec(text) ?? []
    if (command === '/exit' || command === '/quit') return 'exit'
    if (command !== undefined) await this.runCommand(command, argument.trim())
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
    const { columns = Number.POSITIVE_INFINITY, json, write } = this.options
    const text = new WordWrap(columns, json ? () => undefined : write)
    try {
      for await (const chunk of this.model.reply({ messages }, this.replyAbort.signal)) {
        chunks.push(chunk)
        text.push(stripControlCharacters(chunk))
      }
    } finally {
      this.replyAbort = undefined
      text.end()
    }
    const reply = chunks.join('')
    await this.memory.append(this.key, [{ role: 'assistant', content: reply }])
    if (this.options.json) this.writeJson({ reply, ledger })
    else if (this.options.receipt) this.writeLines(formatReceipt(ledger))
  }

  private async runCommand(command: string, argument: string): Promise<void> {
    if (command === '/forget') return this.forget(argument)
    const run = argument === '' && Object.hasOwn(this.commands, command) ? this.commands[command] : undefined
    if (run === undefined)
      throw new MemoryError('bad-option', `Unknown command ${command}. Type /help to list the commands.`, {
        param: command,
      })
    await run()
  }

  private readonly commands: Readonly<Record<string, () => Promise<void>>> = {
    '/receipt': () => this.showReceipt(),
    '/context': () => this.showContext(),
    '/facts': () => this.showFacts(),
    '/help': async () =>
      this.show({ commands: chatCommands }, formatTable(Object.entries(chatCommands).map((entry) => [...entry]))),
  }

  private async showReceipt(): Promise<void> {
    const { ledger } = this
    this.show({ ledger: ledger ?? null }, ledger === undefined ? ['No turns yet.'] : formatReceipt(ledger))
  }

  private async showContext(): Promise<void> {
    const { messages, ledger } = await this.memory.context(this.key)
    this.show({ messages, ledger }, messages.length === 0 ? ['No messages yet.'] : formatMessages(messages))
  }

  private async showFacts(): Promise<void> {
    const { epoch, revision } = await internalsOf(this.memory).sessions.readHead(this.key, 0)
    if (revision > 0) await this.memory.upkeep.run(this.key)
    const facts = epoch === 0 && revision === 0 ? [] : await this.memory.upkeep.facts(this.key)
    const rows = facts.map((fact) => [fact.field, fact.sources[0]?.message ?? '-', formatStatement(fact)])
    this.show({ facts }, facts.length === 0 ? ['No facts: nothing was stated that lasts.'] : formatTable(rows))
  }

  /** Forgets the session, a message of it, or a text in its scope, after the user has seen what would go. */
  private async forget(argument: string): Promise<void> {
    const isConfirmed = /(?:^|\s)--yes$/.test(argument)
    const name = argument.replace(/(?:^|(?<!\s)\s+)--yes$/, '')
    const key = formatKey(this.key)
    const target: ForgetTarget =
      name === '' ? { key } : /^m\d+$/.test(name) ? { key, messageId: name } : { scope: this.key.scope, text: name }
    const { lines, value, isEmpty } = await previewForget(internalsOf(this.memory).store, target)
    if (isEmpty) return this.show(value, lines)
    if (!isConfirmed) {
      this.show(value, lines)
      if (this.options.confirm === undefined)
        throw new MemoryError('bad-option', `Nothing was deleted. Write /forget ${name} --yes`.replace('  ', ' '), {
          param: '/forget',
        })
      if (!(await this.options.confirm('Delete this for good?'))) return this.options.write('Nothing was deleted.\n')
    }
    const forgotten = await this.memory.forget(target)
    this.ledger = undefined
    const count = forgotten.sessions.reduce((sum, session) => sum + session.entries.length, 0)
    this.show({ forgotten }, [`Deleted ${formatCount(count, 'entry', 'entries')}.`])
  }

  private show(value: unknown, lines: readonly Line[]): void {
    if (this.options.json) this.writeJson(value)
    else this.writeLines(lines)
  }

  private writeLines(lines: readonly Line[]): void {
    this.options.write(formatLines(lines))
  }

  private writeJson(value: unknown): void {
    this.options.write(`${JSON.stringify(value)}\n`)
  }
}
