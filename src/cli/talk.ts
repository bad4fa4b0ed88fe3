import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'
import type { Memory } from '../memory.ts'
import { receiptTable } from './receipt.ts'
import { printable } from './say.ts'

/** How a conversation is written down. */
export type Manner = { readonly json: boolean; readonly receipt: boolean; readonly write: (text: string) => void }

const commands: Readonly<Record<string, string>> = {
  '/receipt': 'what the last turn was shown and what it cost',
  '/forget': 'forget this session',
  '/help': 'this list',
  '/quit': 'end',
}

/** A conversation with a model, line by line. */
export class Talk {
  private readonly memory: Memory
  private readonly model: Model
  private readonly key: Key
  private readonly manner: Manner
  private ledger: Ledger | undefined
  private speaking: AbortController | undefined

  constructor(memory: Memory, model: Model, key: Key, manner: Manner) {
    this.memory = memory
    this.model = model
    this.key = key
    this.manner = manner
  }

  /** Takes a line of the user's: something to say, or a command. */
  async take(line: string): Promise<'quit' | 'more'> {
    const text = line.trim()
    if (text === '/quit') return 'quit'
    if (/^\/[a-z]+$/.test(text)) await this.obey(text)
    else if (text !== '') await this.say(line)
    return 'more'
  }

  /** Stops the reply that is being given; false if there is none. */
  stop(): boolean {
    this.speaking?.abort()
    return this.speaking !== undefined
  }

  private async say(content: string): Promise<void> {
    await this.memory.append(this.key, [{ role: 'user', content }])
    const { messages, ledger } = await this.memory.context(this.key)
    this.ledger = ledger
    this.speaking = new AbortController()
    const reply: string[] = []
    try {
      for await (const piece of this.model.reply({ messages }, this.speaking.signal)) {
        reply.push(piece)
        if (!this.manner.json) this.manner.write(printable(piece))
      }
    } finally {
      this.speaking = undefined
      if (!this.manner.json && reply.length > 0) this.manner.write('\n')
    }
    await this.memory.append(this.key, [{ role: 'assistant', content: reply.join('') }])
    if (this.manner.json) this.print({ reply: reply.join(''), ledger })
    else if (this.manner.receipt) this.manner.write(`${receiptTable(ledger)}\n`)
  }

  private async obey(command: string): Promise<void> {
    if (command === '/receipt') return this.showReceipt()
    if (command === '/forget') return this.forget()
    if (command !== '/help')
      throw new MemoryError('bad-option', `${command} is no command. /help lists them.`, { param: command })
    if (this.manner.json) return this.print({ commands })
    for (const [name, what] of Object.entries(commands)) this.manner.write(`${name.padEnd(9)} ${what}\n`)
  }

  private showReceipt(): void {
    if (this.manner.json) this.print({ ledger: this.ledger ?? null })
    else this.manner.write(this.ledger === undefined ? 'There is no turn yet.\n' : `${receiptTable(this.ledger)}\n`)
  }

  private async forget(): Promise<void> {
    const forgotten = await this.memory.forget({ key: formatKey(this.key) })
    this.ledger = undefined
    const count = forgotten.sessions.reduce((sum, session) => sum + session.entries.length, 0)
    if (this.manner.json) this.print({ forgotten })
    else this.manner.write(`Forgotten: ${count} ${count === 1 ? 'entry' : 'entries'}.\n`)
  }

  private print(value: unknown): void {
    this.manner.write(`${JSON.stringify(value)}\n`)
  }
}
