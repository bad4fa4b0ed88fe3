import { isStopword, splitWords } from '../../src/text/words.ts'
import { givenNames } from './givenNames.ts'

export type Dialogue = { readonly turns: readonly (readonly [speaker: string, text: string])[] }

/** Kinds of (query, turn) pairs, as stored by number. */
const pairKinds = { questionAndReply: 0, sentenceAndRest: 1, keywords: 2 } as const

/** Numbers of the texts of a query and of the turn that answers it. */
export type Pair = {
  readonly query: number
  readonly turn: number
  readonly dialogue: number
  readonly kind: (typeof pairKinds)[keyof typeof pairKinds]
}

export type Examples = {
  /** Turns, parts of turns and queries, then single words and words in a short phrase. */
  readonly texts: readonly string[]
  readonly pairs: readonly Pair[]
  /** Number of the first text that teaches a single word. */
  readonly firstWordText: number
}

const maxTextCharacters = 400
/** Words that also appear in a short phrase. */
const maxPhraseWords = 25_000
const maxKeywords = 8

const questionOpenings = [
  ...['What did', 'When did', 'Where did', 'Why did', 'What does', 'How did', 'Who did', 'Which', 'What kind of'],
  ...['How many', 'What is', 'When is', 'Did'],
]
const phraseOpenings = [
  ...['I love ', 'my ', 'we talked about ', 'I bought ', 'about the ', 'she likes ', 'I went to the ', 'working on '],
]
const openingWords = /^(I|I'm|my|me|so|and|but|oh|yeah|yes|well|really|just|very|the)$/i
const endsWithQuestionMark = /\?\s*$/

/** Creates a linear congruential generator, so that the same dialogues give the same examples. */
function createRandom(): () => number {
  let state = 7
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const splitSentences = (text: string): string[] => text.split(/(?<=[.!?])\s+/)

/** Counts the words that carry meaning. */
const countContentWords = (text: string): number =>
  splitWords(text).filter((word) => !isStopword(word) && word.length > 2).length

/** Turns a question to a person into one about the person: "do you like your job" gives "does Ann like Ann's job". */
const toThirdPerson = (text: string, name: string): string =>
  text
    .replace(/\b(are|were) you\b/gi, (_, verb: string) => `${verb.toLowerCase() === 'are' ? 'is' : 'was'} ${name}`)
    .replace(/\bdo you\b/gi, `does ${name}`)
    .replace(/\bhave you\b/gi, `has ${name}`)
    .replace(/\byour\b/gi, `${name}'s`)
    .replace(/\byou('re| are)\b/gi, `${name} is`)
    .replace(/\byou\b/gi, name)

/** Puts the name of the speaker in for "I" and "my". */
const nameSpeaker = (text: string, name: string): string =>
  text
    .replace(/\bI('m| am)\b/g, `${name} is`)
    .replace(/\bmy\b/gi, `${name}'s`)
    .replace(/\bI\b/g, name)

/** Creates the examples of dialogues, added one by one, and of words. */
export class ExampleBuilder {
  private readonly texts: string[] = []
  private readonly pairs: Pair[] = []
  private readonly random = createRandom()
  private dialogueCount = 0

  /** Adds every turn, and up to two pairs for each. */
  addDialogue({ turns }: Dialogue): void {
    const dialogue = this.dialogueCount++
    const numbers = turns.map(([, text]) => this.addText(text))
    const names = [this.pick(givenNames), this.pick(givenNames)] as const
    const nameOf = (speaker: string): string => names[speaker === turns[0]?.[0] ? 0 : 1]
    turns.forEach(([speaker, text], at) => {
      const number = numbers[at] as number
      const next = turns[at + 1]
      if (next !== undefined && next[0] !== speaker)
        this.addQuestion(text, { reply: next[1], number: number + 1, name: nameOf(next[0]), dialogue })
      this.addStatement(text, { number, name: nameOf(speaker), dialogue })
    })
  }

  /** Ends the examples with single words, so that every row of the table is trained. */
  build(words: readonly string[]): Examples {
    const isTaught = (word: string): boolean => !isStopword(word) && !/\d/.test(word)
    const firstWordText = this.texts.length
    for (const word of words.filter(isTaught)) this.addText(word)
    for (const word of words.slice(0, maxPhraseWords).filter(isTaught)) this.addText(this.pick(phraseOpenings) + word)
    return { texts: this.texts, pairs: this.pairs, firstWordText }
  }

  get conversations(): number {
    return this.dialogueCount
  }

  private addText(text: string): number {
    return this.texts.push(text.slice(0, maxTextCharacters)) - 1
  }

  private pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)] as T
  }

  /** Pairs a question with the reply. Most name the person asked, as questions about stored conversations do. */
  private addQuestion(
    text: string,
    { reply, number, name, dialogue }: { reply: string; number: number; name: string; dialogue: number },
  ): void {
    if (!endsWithQuestionMark.test(text) || countContentWords(reply) < 3) return
    const question = splitSentences(text).at(-1) as string
    if (countContentWords(question) < 1) return
    const query = this.addText(this.random() < 0.75 ? toThirdPerson(question, name) : question)
    this.pairs.push({ query, turn: number, dialogue, kind: pairKinds.questionAndReply })
  }

  /** Pairs a sentence with the rest of its turn, or some words of a turn with the turn. */
  private addStatement(
    text: string,
    { number, name, dialogue }: { number: number; name: string; dialogue: number },
  ): void {
    const sentences = splitSentences(text).filter((sentence) => countContentWords(sentence) >= 2)
    if (sentences.length > 1 && this.random() < 0.6) {
      const chosen = Math.floor(this.random() * sentences.length)
      const sentence = nameSpeaker(sentences[chosen] as string, name)
      // The person addressed stays "you", with the verb of the other queries.
      const query = this.addText(toThirdPerson(sentence, 'you'))
      const turn = this.addText(sentences.filter((_, at) => at !== chosen).join(' '))
      this.pairs.push({ query, turn, dialogue, kind: pairKinds.sentenceAndRest })
    } else if (countContentWords(text) >= 5 && !endsWithQuestionMark.test(text) && this.random() < 0.35) {
      const words = text.replace(/[.!?,;:"]/g, ' ').split(/\s+/)
      const candidates = words.filter((word) => word !== '' && !openingWords.test(word))
      const keywords = candidates.filter(() => this.random() < 0.55).slice(0, maxKeywords)
      if (keywords.length < 2) return
      const query = this.addText(`${this.pick(questionOpenings)} ${name} ${keywords.join(' ')}?`)
      this.pairs.push({ query, turn: number, dialogue, kind: pairKinds.keywords })
    }
  }
}
