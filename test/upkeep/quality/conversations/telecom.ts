import type { Expectations } from '../score.ts'

export const telecom: Expectations = {
  facts: [
    ['customer number', /604\s?118\s?275/],
    ['name', /Daniel Osei/],
    ['contract holder', /Abena/, /wife|contract/i],
    ['current telephone number', /0160\s?771\s?0032/],
    ['text messages only', /text/i, /only|call|contact|prefer/i],
    ['nurse', /nurse/i],
    ['limit of 40 a month', /\b40\b|39\.95/],
    ['address', /Lindenweg 8/],
    ['landlord', /Hansa Wohnen/],
    ['stays on Home 100', /Home 100/],
  ],
  memory: [
    ['symptom', /drop|lost|interrupt|synchroni/i, /evening|8|19:30|20:/i],
    ['customer number', /604\s?118\s?275/],
    ['ticket', /T-48820/],
    ['powerline adapters ruled out', /powerline|adapters?/i, /not|rule|still|unplugged/i],
    ['technician on 24 April', /24 April|24th/i, /technician|appointment/i],
    ['socket replaced', /socket/i, /replaced/i],
    ['new router', /Vega 5/],
    ['stable with the new router', /router|line/i, /stable|not a single drop|no drops/i],
    ['compensation', /46\.60|compensation|credit/i, /46\.60/],
    ['riser cable is open', /cable/i, /Hansa Wohnen|landlord|third quarter/i],
    ['stays on Home 100', /Home 100/],
    ['text messages only', /text/i, /only|call|contact|prefer/i],
    ['limit of 40 a month', /\b40\b|39\.95/],
  ],
  stale: [
    ['old appointment', /23 April|the 23rd|thursday/i, /24 April|24th|friday/i],
    ['old telephone number', /0151\s?2299\s?4410/, /0160\s?771\s?0032/],
    ['ruled-out cause', /powerline[^.]*(cause|disturb)|that could well be/i, /not|rule|still/i],
  ],
  never: [
    ['tariff of the forum', /Fiber 1000|NetOne/],
    ['price of the forum', /19\.99/],
    ['router of the forum', /HyperBox/],
    ['small talk', /losing my mind|grumpy/i],
  ],
  notFacts: [
    ["neighbour's experience", /two years|new door/i],
    ['possible speed', /250 Mbit/i],
    ['right to cancel from the forum', /right to cancel|after 3 days/i],
  ],
}
