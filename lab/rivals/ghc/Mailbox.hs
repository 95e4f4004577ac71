-- | @mailbox@: one thread sends itself messages and then receives them all.
--
-- Invariant: an action in 'IO' builds a fresh text, so the compiler cannot move it out of the
-- loop.
module Mailbox (mailbox) where

import Control.Exception (evaluate)
import Control.Monad (forM_, replicateM_)
import qualified Data.ByteString.Char8 as C
import Data.ByteString.Short (ShortByteString)
import qualified Data.ByteString.Short as S
import Data.ByteString.Short.Internal (createFromPtr)
import Data.ByteString.Unsafe (unsafeUseAsCStringLen)

import Measure
import Queue

-- | A text and further fields. The fields are strict, so that nothing is left to evaluate at the receipt.
data Message = Message !ShortByteString !Int !Int !Double

mailbox :: Int -> Int -> Bool -> IO ()
mailbox k bytes fresh = do
  let original = C.replicate bytes 'x'
  text <- evaluate (S.toShort original)
  let copy = unsafeUseAsCStringLen original (uncurry createFromPtr)
      make = if fresh then copy else pure text
  me <- newQueue
  holding 0
  sendClock <- now
  forM_ [1 .. k] $ \i -> do
    sent <- make
    push me $! Message sent i (i + 1) (fromIntegral i * 0.5)
  sending <- subtract sendClock <$> now
  holding k

  receiveClock <- now
  replicateM_ k (pop me >>= look)
  receiving <- subtract receiveClock <$> now
  let each total = total / fromIntegral k
  printMetrics
    [ ("ns_per_send", each sending)
    , ("ns_per_receive", each receiving)
    ]

look :: Message -> IO ()
look (Message text number size share) =
  if S.null text || number > size || share < 0 then failWith "A message is damaged." else pure ()
{-# NOINLINE look #-}
