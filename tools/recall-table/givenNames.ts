/** Common given names, put in for the speakers of dialogues, who are anonymous. */
export const givenNames =
  `James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph
  Jessica Thomas Sarah Charles Karen Christopher Lisa Daniel Nancy Matthew Betty Anthony Sandra Mark Margaret Donald
  Ashley Steven Kimberly Andrew Emily Paul Donna Joshua Michelle Kenneth Carol Kevin Amanda Brian Melissa George
  Deborah Timothy Stephanie Ronald Rebecca Jason Laura Edward Helen Jeffrey Sharon Ryan Cynthia Jacob Kathleen Gary
  Amy Nicholas Angela Eric Shirley Jonathan Anna Stephen Brenda Larry Pamela Justin Nicole Scott Samantha Brandon
  Katherine Benjamin Emma Samuel Ruth Gregory Christine Alexander Catherine Patrick Debra Frank Rachel Raymond
  Carolyn Jack Janet Dennis Virginia Jerry Maria Tyler Heather Aaron Diane Jose Julie Adam Joyce Nathan Victoria
  Henry Kelly Zachary Christina Douglas Lauren Peter Joan Kyle Evelyn Noah Olivia Ethan Judith Jeremy Megan Walter
  Cheryl Christian Andrea Keith Hannah Roger Martha Terry Jacqueline Austin Frances Sean Gloria Gerald Ann Carl
  Teresa Harold Kathryn Dylan Sara Arthur Janice Lawrence Jean Jordan Alice Jesse Madison Bryan Doris Billy Abigail
  Bruce Julia Gabriel Judy Joe Grace Logan Denise Alan Amber Juan Marilyn Albert Beverly Willie Danielle Elijah
  Theresa Wayne Sophia Randy Marie Vincent Diana Mason Brittany Roy Natalie`.split(/\s+/)
