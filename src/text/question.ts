const mark = /[?\u037e\u061f\uff1f][^?\u037e\u061f\uff1f\n]{0,120}$/u
const asks =
  /^\s*(?:what|when|where|who|whom|whose|which|why|how|did|do|does|is|are|was|were|has|have|had|can|could|would|will|should|am)\b/i
const orders = /^\s*do (?:it|this|that|so|not|the|them)\b/i

/** Whether somebody wants to know something, rather than wants something done. */
export function isQuestion(text: string): boolean {
  const [first = ''] = text.slice(0, 200).trimStart().split('\n', 1)
  return mark.test(text.slice(-400)) || (asks.test(first) && !orders.test(first) && !/[.!:;]/.test(first))
}
