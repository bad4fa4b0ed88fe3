import { speakerOf } from '../context/entryText.ts'
import type { ParsedMessage } from '../domain/chat.ts'
import { isBlank, type Role, type Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { TokenizerName } from '../domain/profile.ts'
import { chatOverhead } from '../text/cost.ts'
import { ascii35, chars4 } from '../text/estimators.ts'
import { upperBound } from '../text/upperBound.ts'
import { createRankIndex } from './bytePairs.ts'
import { fastTokenCounters, type MessageCosts } from './fastTokenCounters.ts'
import { splitPatterns } from './splitPatterns.ts'
import { type LineLabel, TokenCounter } from './tokenCounter.ts'

type Encoding = keyof typeof splitPatterns

const loaded = new Map<Encoding, Promise<Tokenizer>>()

/**
 * Loads a tokenizer that counts as OpenAI's models do. The rank table is loaded on the first call for an encoding and
 * shared by later calls. A piece of over 4,096 characters, and text beyond 32,768 tokens, is bounded from above;
 * `isExact` reports this.
 *
 * @example
 * const tokenizer = await exactTokenizer('o200k_base')
 * tokenizer.count('Hello world') // 2
 */
export function exactTokenizer(encoding: Encoding): Promise<Tokenizer> {
  let tokenizer = loaded.get(encoding)
  if (tokenizer === undefined) {
    tokenizer = load(encoding)
    loaded.set(encoding, tokenizer)
  }
  return tokenizer
}

/** Loads the exact tokenizer for a model name. Names of unknown models get `o200k_base`; see `encodingFor`. */
export const tokenizerFor = (model: string): Promise<Tokenizer> => exactTokenizer(encodingFor(model))

/** Loads the tokenizer that a profile names. `exact` is `o200k_base`. */
export async function tokenizerNamed(name: TokenizerName): Promise<Tokenizer> {
  switch (name) {
    case 'exact':
      return exactTokenizer('o200k_base')
    case 'upper-bound':
      return upperBound
    case 'ascii-3.5':
      return ascii35
    case 'chars-4':
      return chars4
  }
}

/**
 * Returns the encoding of a model: `cl100k_base` for gpt-4, gpt-3.5 and embedding models, `o200k_base` for all others.
 *
 * @example
 * encodingFor('ft:gpt-4o-mini-2024-07-18:acme::abc123') // 'o200k_base'
 */
export function encodingFor(model: string): Encoding {
  // Provider and fine-tuning names surround the model name, separated by slashes and colons.
  const name = model
    .toLowerCase()
    .split(/[/:]/)
    .find((part) => /^(?:chatgpt|gpt|o[1-9]|text-embedding)(?:-|$)/.test(part))
  return name !== undefined && /^(?:gpt-4(?:-|$)|gpt-3\.?5|text-embedding-(?:3|ada-002))/.test(name)
    ? 'cl100k_base'
    : 'o200k_base'
}

async function load(encoding: Encoding): Promise<Tokenizer> {
  const { default: table } = await (encoding === 'o200k_base'
    ? import('gpt-tokenizer/bpeRanks/o200k_base')
    : import('gpt-tokenizer/bpeRanks/cl100k_base'))
  const counter = new TokenCounter(splitPatterns[encoding], createRankIndex(table))
  const isExact: Tokenizer['isExact'] = (text) => counter.isExact(text)
  const tokenizer = {
    name: encoding,
    kind: 'exact',
    overhead: chatOverhead,
    count: (text: string) => counter.count(text),
    isExact,
  } as const
  const messageCounter = new MessageCounter(counter)
  fastTokenCounters.set(tokenizer, (message) => messageCounter.costsOf(message))
  return tokenizer
}

/** Label of a line and chat overhead of a message, for messages of one role that have no name. */
type RoleOverhead = { readonly label: LineLabel; readonly tokens: Tokens }

/** Computes both costs of a plain message in one pass. */
class MessageCounter {
  readonly #counter: TokenCounter
  readonly #roles = new Map<Role, RoleOverhead>()

  constructor(counter: TokenCounter) {
    this.#counter = counter
  }

  costsOf(message: ParsedMessage): MessageCosts | undefined {
    const { role, content, name, toolCalls } = message
    // Other messages are not rendered verbatim: they have names, tool calls, placeholders or memory tags to neutralise.
    if (role === 'tool' || name !== undefined || toolCalls !== undefined || isBlank(content) || content.includes('<'))
      return undefined
    const { label, tokens } = this.#overheadOf(role, message)
    const [alone, line, paragraph] = this.#counter.countLine(label, content)
    return [Math.max(paragraph, tokens + alone), line]
  }

  #overheadOf(role: Role, message: ParsedMessage): RoleOverhead {
    let overhead = this.#roles.get(role)
    if (overhead === undefined) {
      const text = `${speakerOf(message)}:`
      overhead = {
        label: { text, tokens: this.#counter.count(text) },
        tokens: chatOverhead.message + this.#counter.count(role),
      }
      this.#roles.set(role, overhead)
    }
    return overhead
  }
}
