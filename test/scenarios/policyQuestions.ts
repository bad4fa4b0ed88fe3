/** A policy as an operator writes it, and a question about it in a customer's own words. */
export type PolicyQuestion = { readonly key: string; readonly value: string; readonly question: string }

/** Policies of a mail-order shop. */
export const policyQuestions: readonly PolicyQuestion[] = [
  {
    key: 'refunds',
    value: 'Refunds are paid to the original payment method within 14 days after the return arrives at our warehouse.',
    question: 'I sent the jacket back last week. When do I get my money back?',
  },
  {
    key: 'return window',
    value: 'Unused items can be returned within 30 days of delivery, with the original packaging.',
    question: 'The shoes do not fit, can I still return them after three weeks?',
  },
  {
    key: 'shipping cost',
    value: 'Standard shipping costs 4.90 euros and is free for orders over 60 euros.',
    question: 'How much do you charge for delivery?',
  },
  {
    key: 'express delivery',
    value: 'Express orders placed before noon leave the same day and arrive the next working day.',
    question: 'I need it by tomorrow. Is there a faster option, like express?',
  },
  {
    key: 'international shipping',
    value: 'We ship to all countries of the European Union, Norway and Switzerland, but not overseas.',
    question: 'Do you ship to Canada or other countries?',
  },
  {
    key: 'opening hours',
    value: 'The hotline is staffed Monday to Friday from 8 am to 6 pm.',
    question: 'What time can I call someone? Are you open on Saturday?',
  },
  {
    key: 'warranty',
    value: 'Electronic devices have a warranty of two years; a defect is repaired or the device is replaced.',
    question: 'My blender broke after eight months. Is it still under guarantee?',
  },
  {
    key: 'gift cards',
    value: 'Gift cards are valid for three years and cannot be exchanged for cash.',
    question: 'I have an old gift voucher, has it expired?',
  },
  {
    key: 'payment methods',
    value: 'We accept Visa, Mastercard, PayPal and bank transfer. Invoices are available to business customers only.',
    question: 'Can I pay with PayPal?',
  },
  {
    key: 'order cancellation',
    value: 'An order can be cancelled free of charge until it is handed to the carrier.',
    question: 'I ordered the wrong size by mistake, how do I cancel?',
  },
  {
    key: 'address changes',
    value: 'The delivery address can be corrected in the account until the parcel label is printed.',
    question: 'I moved house. Can you send the package to my new address instead?',
  },
  {
    key: 'damaged parcels',
    value: 'Transport damage must be reported with photos within seven days; we send a replacement at once.',
    question: 'The vase arrived damaged, in a thousand pieces. What now?',
  },
  {
    key: 'tracking',
    value: 'A tracking link is e-mailed as soon as the carrier has scanned the parcel.',
    question: 'Where is my parcel? I would like to track it.',
  },
  {
    key: 'price match',
    value: 'If a competitor sells the same article cheaper, we match the price up to seven days after purchase.',
    question: 'I found this cheaper at another store. Can you do the same price?',
  },
  {
    key: 'student discount',
    value: 'Students get 10 percent off with a valid university e-mail address.',
    question: 'I am still at university, is there a reduction for students?',
  },
  {
    key: 'newsletter',
    value: 'Newsletter subscribers receive a welcome coupon; every issue has a link to unsubscribe.',
    question: 'Please stop sending me these newsletters, how do I unsubscribe?',
  },
  {
    key: 'password reset',
    value: 'A forgotten password is reset with the link on the login page, which is valid for one hour.',
    question: 'I cannot log in any more, I think I forgot my password.',
  },
  {
    key: 'data deletion',
    value: 'Customers may request the deletion of their personal data by writing to the privacy officer.',
    question: 'I want you to delete my account and all my data.',
  },
  {
    key: 'loyalty points',
    value: 'Each euro spent earns one loyalty point; 100 points are worth a 5 euro credit.',
    question: 'How many points do I need before they are worth something?',
  },
  {
    key: 'store pickup',
    value: 'Orders can be picked up at the store in Lyon; they are held for ten days.',
    question: 'Could I pick it up myself instead of having it delivered?',
  },
  {
    key: 'size advice',
    value: 'Trousers run small: customers between two sizes should take the larger one.',
    question: 'I am between M and L, which size of these trousers should I take?',
  },
  {
    key: 'allergens',
    value: 'Our chocolate is produced in a factory that also processes hazelnuts and almonds.',
    question: 'My son is allergic to nuts. Is the chocolate safe for him?',
  },
  {
    key: 'battery disposal',
    value: 'Used batteries are taken back free of charge and recycled.',
    question: 'What do I do with the empty batteries, can I bring them to you?',
  },
  {
    key: 'complaints',
    value: 'Complaints are escalated to the team lead and answered in writing within two working days.',
    question: 'I am really unhappy with this service and want to complain to a manager.',
  },
  {
    key: 'assembly service',
    value: 'Furniture can be assembled at home by our fitters for a flat fee of 49 euros.',
    question: 'Can somebody come and put the wardrobe together? I am bad with furniture.',
  },
]
