import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import { findSecrets } from '../text/secrets.ts'

/** Labels that hold for a value, the innermost first, as they precede it: `password: `. */
export type SecretLabels = readonly string[]

/** Labels tried for a value. */
const maxLabels = 2
/** The end of a longer name decides. */
export const maxLabelCharacters = 100
/** Labels of short names, which messages of a protocol have in common: testing a name takes longer than a message. */
const maxCachedCharacters = 32
const cache = new LruCache<string, { readonly label: string | undefined }>({ maxEntries: 1_000 })
/** Values that are secrets only after a name that says so: none of them is one by itself or contains such a name. */
const probes = [
  '482',
  '482913',
  '219099999',
  'sid=k7Qz9wLm2Xv4Rt8B',
  'ann / wm7Fq2!',
  'ladder orbit velvet mango river stone tunnel garden window silver candle forest',
]
/** Ends a probe; no pattern accepts this character in a name or value. */
const separator = '\n⟨\n'

/**
 * Returns the label that a field name is for the values below it, in the singular or as it is; undefined if no value
 * becomes a secret by it. The singular marks more values: "passwords:" may precede a sentence about them.
 *
 * @example
 * findLabel('passwords') // 'password: '
 */
export function findLabel(name: string): string | undefined {
  if (name.length > maxCachedCharacters) return computeLabel(name)
  return getOrCompute(cache, name, () => ({ label: computeLabel(name) })).label
}

function computeLabel(name: string): string | undefined {
  const singular = name.replace(/s$/i, '')
  return [...new Set([singular, name])].map((form) => `${form}: `).find(marksSecrets)
}

/** Adds a label before others. */
export function addLabel(labels: SecretLabels, label: string | undefined): SecretLabels {
  return label === undefined || labels.includes(label) ? labels : [label, ...labels].slice(0, maxLabels)
}

function marksSecrets(label: string): boolean {
  const found = findSecrets(probes.map((probe) => label + probe).join(separator))
  let from = 0
  return probes.some((probe) => {
    const start = from + label.length
    from = start + probe.length + separator.length
    return found.some((secret) => secret.start >= start && secret.end <= start + probe.length)
  })
}
