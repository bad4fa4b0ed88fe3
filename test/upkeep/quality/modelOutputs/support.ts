import type { RecordedDialogue } from './recorded.ts'

export const brokenMachine: RecordedDialogue = {
  name: 'a broken coffee machine',
  turns: [
    ['user', 'Hello, my coffee machine arrived broken. The order number is BK-20418, I ordered it on 2 March 2026.'],
    ['assistant', 'I am sorry to hear that. What exactly is broken, and would you like a refund or a replacement?'],
    [
      'user',
      'The water tank has a crack and the milk frother is missing. The machine was $249 and I paid $12.50 for shipping.',
    ],
    [
      'assistant',
      'Thank you. Could you send two photos of the tank to returns@brewhaus.example? I can offer a replacement or a full refund.',
    ],
    [
      'user',
      'I sent the photos. I would like a refund, not a replacement. Please do not call me, I am at work until 6 pm. Write an e-mail instead.',
    ],
    ['assistant', 'Understood. The refund goes to the card that ends in 4471 within 5 working days.'],
    ['user', 'If you must reach me by phone on a weekend, my number is +44 7700 900 123. My name is Priya Nair.'],
    [
      'assistant',
      'I have noted that, Ms Nair. The return label RL-88213 is on its way to your e-mail address. You have 14 days to send the machine back.',
    ],
    ['user', 'Does the courier pick it up, or must I bring it to a shop?'],
    ['assistant', 'The courier picks it up. Choose a day on https://brewhaus.example/pickup with the label number.'],
    ['user', 'I chose Thursday, 12 March. Thanks.'],
  ],
  outputs: [
    {
      manner: 'plain narrative',
      reply:
        'Priya Nair reported that her coffee machine from order BK-20418, placed on 2 March 2026, arrived with a cracked water tank and without the milk frother. She paid $249 plus $12.50 shipping and sent photos to returns@brewhaus.example. She wants a refund, not a replacement, and does not want to be called; e-mail is preferred, and on weekends her number is +44 7700 900 123. The refund goes to the card ending in 4471 within 5 working days. Return label RL-88213 was sent, and the courier picks the machine up on Thursday, 12 March, booked at https://brewhaus.example/pickup.',
    },
    {
      manner: 'preamble, bold heading, bullets and an offer',
      reply: `Sure! Here is the summary of the conversation:

**Summary**

* Order BK-20418 (2026-03-02): coffee machine arrived broken, tank cracked, frother missing
* Paid: $249 + $12.50 shipping
* Customer (Priya Nair) wants a refund, **not** a replacement
* No phone calls; e-mail instead. Weekend phone: +447700900123
* Refund to card ending 4471 within 5 working days
* Return label RL-88213; courier pickup on March 12th via https://brewhaus.example/pickup

Let me know if you need anything else!`,
    },
    {
      manner: 'a derived total and normalised values',
      reply:
        'The customer, Priya Nair, received a broken coffee machine (order BK-20418 from 2026-03-02): the water tank is cracked and the milk frother is missing. She paid a total of $261.50, shipping included. She chose a refund instead of a replacement. She must not be called before 18:00 and prefers e-mail; her phone is +447700900123. The refund arrives on card 4471 within five working days. Label RL-88213 was sent and pickup is on Thursday, March 12, 2026.',
    },
    {
      manner: 'terse notes',
      reply:
        'Order BK-20418, coffee machine, cracked tank, missing frother. Wants refund, no replacement. No calls, e-mail only. Refund to card 4471 in 5 working days. Label RL-88213. Pickup Thursday 12 March.',
    },
    {
      manner: 'a code fence and headings',
      reply: `\`\`\`markdown
## Problem
The coffee machine of order BK-20418 arrived with a cracked water tank and no milk frother.
## Wishes
Refund, no replacement. Do not call; write an e-mail. Weekend phone +44 7700 900123.
## Status
Refund to the card ending in 4471 within 5 working days. Return label RL-88213 sent; courier pickup on 12 March.
\`\`\``,
    },
    {
      manner: 'too long by a few sentences',
      reply:
        'The conversation is between a customer named Priya Nair and a support assistant. The customer opened the conversation with a greeting and explained that her coffee machine had arrived broken. The order number is BK-20418 and the order was placed on 2 March 2026. The water tank has a crack and the milk frother is missing from the box. The machine cost $249 and shipping cost $12.50. The assistant was sorry and asked for two photos of the tank, which she sent to returns@brewhaus.example. She was offered a replacement or a full refund. She would like a refund, not a replacement. She asked the assistant not to call because she is at work until 6 pm, and to write an e-mail instead. If necessary, she can be reached on weekends at +44 7700 900 123. The refund goes to the card that ends in 4471 within 5 working days. The return label RL-88213 is on its way, and she has 14 days to send the machine back. The courier picks it up on Thursday, 12 March, chosen on https://brewhaus.example/pickup. She thanked the assistant at the end.',
    },
    {
      manner: 'a wrong amount',
      unfaithful: 'wrong number',
      reply:
        'Priya Nair reported that her coffee machine from order BK-20418 arrived with a cracked water tank and without the milk frother. She paid $294 plus $12.50 shipping. She wants a refund, not a replacement, and no phone calls. The refund goes to the card ending in 4471 within 5 working days. Label RL-88213; pickup on Thursday, 12 March.',
    },
    {
      manner: 'a dropped negation',
      unfaithful: 'dropped negation',
      reply:
        'Priya Nair received a broken coffee machine (order BK-20418): the water tank is cracked and the milk frother is missing. She wants a refund to the card ending in 4471. Please call her at work until 6 pm about it. Return label RL-88213 was sent and the courier picks the machine up on Thursday, 12 March.',
    },
    {
      manner: 'an invented ticket',
      unfaithful: 'invented identifier',
      reply:
        'Priya Nair received a broken coffee machine (order BK-20418): the water tank is cracked and the milk frother is missing. She wants a refund, not a replacement, and no calls. Ticket CS-55102 was opened. The refund goes to the card ending in 4471. Return label RL-88213; pickup on Thursday, 12 March.',
    },
    {
      manner: 'a placeholder',
      unfaithful: 'empty',
      reply: 'SUMMARY BY MODEL',
    },
  ],
}

export const factura: RecordedDialogue = {
  name: 'an internet bill in Spanish',
  turns: [
    ['user', 'Hola, tengo un problema con la factura de internet. Me cobraron 58,90 € en lugar de 39,90 €.'],
    ['assistant', 'Lamento el inconveniente. ¿Me puede dar su número de contrato?'],
    ['user', 'Mi número de contrato es CT-771204. El titular es Javier Ortega.'],
    ['assistant', 'Gracias. Veo un cargo de 19 € por el alquiler de un router que usted no ha pedido.'],
    ['user', 'Exacto, yo no quiero el router. Quiero que devuelvan el dinero a mi cuenta y no a la tarjeta.'],
    ['assistant', 'De acuerdo. La devolución de 19 € llegará a su cuenta antes del 20 de abril.'],
    ['user', 'Además, la conexión se corta cada noche a las 22:30. Ya reinicié el equipo tres veces.'],
    ['assistant', 'Enviaremos un técnico. ¿Le va bien el martes por la mañana?'],
    ['user', 'El martes no puedo. Mejor el jueves a las 10:00. No manden al técnico sin avisar antes.'],
    ['assistant', 'Confirmado: jueves a las 10:00, y le llamamos al 612 345 678 antes de llegar.'],
    ['user', 'Perfecto, ese es mi número. Gracias.'],
  ],
  outputs: [
    {
      manner: 'plain narrative in the same language',
      reply:
        'Javier Ortega (contrato CT-771204) reclama que le cobraron 58,90 € en lugar de 39,90 € en la factura de internet. El cargo de 19 € es por el alquiler de un router que no quiere. La devolución llegará a su cuenta, no a la tarjeta, antes del 20 de abril. La conexión se corta cada noche a las 22:30. El técnico irá el jueves a las 10:00 y no debe ir sin avisar antes al 612 345 678.',
    },
    {
      manner: 'preamble and bullets',
      reply: `Aquí tienes el resumen de la conversación:

- Cliente: Javier Ortega, contrato CT-771204
- Factura: cobraron 58,90 € en vez de 39,90 €; sobran 19 € por un router que no quiere
- Devolución a la cuenta (no a la tarjeta) antes del 20/04
- La conexión se corta cada noche a las 22:30, reinició el equipo 3 veces
- Técnico: jueves a las 10:00, no ir sin avisar antes (612345678)

Avísame si necesitas algo más.`,
    },
    {
      manner: 'another language first, the same language on request',
      reply:
        'Javier Ortega was charged too much on his internet bill because of a router rental. He wants his money back, and a technician will visit on Thursday at 10:00.',
      second:
        'Javier Ortega, contrato CT-771204: cobraron 58,90 € en lugar de 39,90 € por el alquiler de un router que no quiere. Devolución de 19 € a su cuenta antes del 20 de abril, no a la tarjeta. La conexión se corta cada noche a las 22:30; el técnico va el jueves a las 10:00 y avisa antes.',
    },
    {
      manner: 'terse notes',
      reply:
        'Contrato CT-771204 (Javier Ortega). Factura de 58,90 € en lugar de 39,90 €. No quiere el router, devolución de 19 € a la cuenta y no a la tarjeta. Cortes de conexión cada noche. Técnico jueves a las 10:00, no sin avisar antes.',
    },
    {
      manner: 'the day that did not suit',
      unfaithful: 'stale value',
      reply:
        'Javier Ortega (contrato CT-771204) pagó 58,90 € en lugar de 39,90 € por un router que no quiere. La devolución de 19 € llegará a su cuenta antes del 20 de abril. La conexión se corta cada noche a las 22:30 y el técnico irá el martes por la mañana.',
    },
    {
      manner: 'a wrong date',
      unfaithful: 'wrong date',
      reply:
        'Javier Ortega (contrato CT-771204) pagó 58,90 € en lugar de 39,90 € por un router que no quiere. La devolución de 19 € llegará a su cuenta, no a la tarjeta, antes del 30 de abril. La conexión se corta cada noche y el técnico irá el jueves a las 10:00, no sin avisar antes.',
    },
    {
      manner: 'a dropped negation',
      unfaithful: 'dropped negation',
      reply:
        'Javier Ortega (contrato CT-771204) pagó 58,90 € en lugar de 39,90 €. Quiere el router y la devolución de 19 € a su cuenta antes del 20 de abril. La conexión se corta cada noche a las 22:30 y el técnico irá el jueves a las 10:00.',
    },
    {
      manner: 'a sentence without content',
      unfaithful: 'empty',
      reply:
        'El usuario y el asistente hablaron de varios temas y el asistente respondió a todas las preguntas del usuario.',
    },
  ],
}
