// Upkeep: what the built-in summariser keeps. Names and numbers in a tenth of the tokens, evidence in 30 % of the words.
import { tokenizerNamed } from '../src/models/tokenizers.ts'
import { type Summarised, summarise, type Target, type Told } from '../src/upkeep/summarise.ts'
import { lossesOf } from '../src/upkeep/verify.ts'
import { type BenchMessage, type Conversation, flags, load, percent } from './data.ts'

const sets = ['locomo-dev', 'beam-100k', 'transcripts-dev'] as const
const exact = await tokenizerNamed('exact')

/** What counts, found without the project's own patterns: URLs, paths, camelCase, snake_case, kebab-case, hashes, numbers of four digits or more. */
const identifier =
  /(?<![A-Za-z0-9<\\)\]+*$])(?:https?:\/\/[^\s"'`<>)\]]+|[\w@~-]*(?:[./][\w@-]+)*\/[\w@.-]+|[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+|[a-z0-9]+(?:-[a-z0-9]+)+|[0-9a-f]{7,40}\b|\d{4,}\b)/g
const namesIn = (text: string): Set<string> => new Set((text.match(identifier) ?? []).map((name) => name.replace(/^-+|[.,;:*_}-]+$/g, '')))

const told = ({ id, at, role, speaker, text }: BenchMessage, sequence: number): Told => ({
  id,
  sequence,
  at: at ?? 0,
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
})

const joined = (messages: readonly BenchMessage[]): string => messages.map((message) => message.text).join('\n')
const countWords = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length

const started = performance.now()
const timed = (messages: readonly Told[], target: Target): Summarised & { took: number } => {
  const start = performance.now()
  const made = summarise(messages, undefined, target)
  return { ...made, took: performance.now() - start }
}
void started
void lossesOf

type Survival = { kept: number; reachable: number; wanted: number; slowest: number }

function survival({ messages }: Conversation): Survival & {text:string} {
  const source = joined(messages)
  const budget = Math.floor(exact.count(source) / 10)
  const all = messages.map(told)
  const { text, took } = timed(all, { fits: (candidate) => exact.count(candidate) <= budget })
  const wanted = namesIn(source)
  const lost = lossesOf(text, all).map((loss) => loss.text).join('\n')
  let [kept, reachable] = [0, 0]
  for (const name of wanted) {
    if (text.includes(name)) kept++
    if (text.includes(name) || lost.includes(name)) reachable++
    else if(process.env.SHOW) console.log('  unreachable', JSON.stringify(name))
  }
  return { kept, reachable, wanted: wanted.size, slowest: took, text }
}

for (const name of sets) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  const results = load(name).map(survival)
  const sum = (of: (result: Survival) => number): number => results.reduce((total, result) => total + of(result), 0)
  const mean = sum(({ kept, wanted }) => kept / wanted) / results.length
  console.log(`${name}: ${percent(sum((r) => r.kept) / sum((r) => r.wanted))} (mean ${percent(mean)}, least ${percent(Math.min(...results.map((r)=>r.kept/r.wanted)))}), reachable ${percent(sum((r) => r.reachable) / sum((r) => r.wanted))}, slowest ${Math.max(...results.map((r) => r.slowest)).toFixed(0)} ms`)
  if(process.env.EACH) console.log(results.map((r)=>`${r.kept}/${r.wanted}`).join(' '))
  if(process.env.TEXT) console.log(results[0]!.text.slice(0, 3000), '\n...\n', results[0]!.text.slice(-1500))
}

const normal = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

function gramsOf(words: readonly string[]): Set<string> {
  const grams = new Set<string>()
  for (let at = 0; at + 5 <= words.length; at++) grams.add(words.slice(at, at + 5).join(' '))
  return grams
}

function presence(text: string): (turn: string) => boolean {
  const words = normal(text)
  const [flat, grams] = [` ${words.join(' ')} `, gramsOf(words)]
  return (turn) => {
    const own = normal(turn)
    if (own.length < 5) return flat.includes(` ${own.join(' ')} `)
    const wanted = [...Array(own.length - 4).keys()].map((at) => own.slice(at, at + 5).join(' '))
    return wanted.filter((gram) => grams.has(gram)).length >= 0.9 * wanted.length
  }
}
for (const name of ['locomo-dev', 'beam-100k'] as const) {
  if (flags.only !== undefined && !name.startsWith(flags.only)) continue
  let [uk,un,q,qn]=[0,0,0,0]; const per:string[]=[]; let slow=0
  for (const { messages, questions = [] } of load(name)) {
    const most = Math.floor(0.3 * messages.reduce((s,m)=>s+countWords(m.text),0))
    const { text, took } = timed(messages.map(told), { words: [0, most] })
    slow=Math.max(slow,took)
    if(countWords(text)>most) console.log('OVER')
    const isPresent = presence(text)
    const byId = new Map(messages.map((m)=>[m.id,m]))
    const present = new Map<string, boolean>()
    let [a,b,c,d2]=[0,0,0,0]
    for (const question of questions) {
      const ev = question.evidence.filter((id)=>byId.has(id)); if(!ev.length) continue
      for (const id of ev) if(!present.has(id)) present.set(id,isPresent(byId.get(id)!.text))
      c+=ev.filter((id)=>present.get(id)).length/ev.length; d2++
    }
    for(const v of present.values()){b++; if(v)a++}
    uk+=a;un+=b;q+=c;qn+=d2; per.push(`${percent(a/b)}/${percent(c/d2)}`)
  }
  console.log(`${name}: evidence union ${percent(uk/un)} mean ${percent(q/qn)} [${per.join(' ')}] slowest ${slow.toFixed(0)}`)
}
