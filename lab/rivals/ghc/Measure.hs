{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}

-- | What the workloads measure with: sizes, a shared counter, metrics, and the pattern of
-- the traffic.
module Measure
  ( Counter, add, counted, fetchAdd, newCounter
  , Gate, newGate, count, wait
  , badUsage, failWith, holding, nextTarget, now, printMetrics
  ) where

import Control.Concurrent.MVar (MVar, newEmptyMVar, putMVar, takeMVar)
import Control.Monad (void, when)
import Data.Bits (shiftL, shiftR, xor)
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Exts
import GHC.IO (IO (..))
import Numeric (showFFloat)
import System.Exit (ExitCode (..), exitWith)
import System.IO (hFlush, hPutStrLn, stderr, stdout)

-- | A number that threads add to.
data Counter = Counter (MutableByteArray# RealWorld)

newCounter :: IO Counter
newCounter = IO $ \s0 -> case newByteArray# 8# s0 of
  (# s1, number #) -> case writeIntArray# number 0# 0# s1 of
    s2 -> (# s2, Counter number #)

-- | Adds atomically; the result is the number before.
fetchAdd :: Counter -> Int -> IO Int
fetchAdd (Counter number) (I# more) = IO $ \s0 -> case fetchAddIntArray# number 0# more s0 of
  (# s1, old #) -> (# s1, I# old #)
{-# INLINE fetchAdd #-}

add :: Counter -> Int -> IO ()
add counter more = void (fetchAdd counter more)
{-# INLINE add #-}

counted :: Counter -> IO Int
counted counter = fetchAdd counter 0

-- | A counter that wakes the main thread when it is full.
data Gate = Gate !Counter !Int !(MVar ())

newGate :: Int -> IO Gate
newGate full = do
  opened <- newEmptyMVar
  counter <- newCounter
  pure (Gate counter full opened)

-- | Counts one: a single atomic addition.
count :: Gate -> IO ()
count (Gate counter full opened) = do
  before <- fetchAdd counter 1
  when (before + 1 == full) (putMVar opened ())

-- | Waits until all have counted; only the main thread may call it.
wait :: Gate -> IO ()
wait (Gate _ _ opened) = takeMVar opened

-- | Monotonic time in nanoseconds.
now :: IO Double
now = fromIntegral <$> getMonotonicTimeNSec

-- | Tells the starter that this program holds so many things, and waits while it reads the memory.
holding :: Int -> IO ()
holding size = putStrLn ("at " ++ show size) >> hFlush stdout >> void getLine

printMetrics :: [(String, Double)] -> IO ()
printMetrics metrics =
  putStr (unlines [name ++ " " ++ showFFloat (Just 3) value "" | (name, value) <- metrics])

-- | Ends the program because the rival cannot do what was asked.
failWith :: String -> IO a
failWith sentence = hPutStrLn stderr sentence >> exitWith (ExitFailure 1)

-- | Ends the program because it was called wrongly.
badUsage :: String -> IO a
badUsage sentence = hPutStrLn stderr sentence >> exitWith (ExitFailure 2)

-- | One step of xorshift64 (shifts 13, 7, 17): the next state, and the target below the limit.
nextTarget :: Int -> Word64 -> (Word64, Int)
nextTarget limit s0 = (s3, fromIntegral (s3 `rem` fromIntegral limit))
  where
    s1 = s0 `xor` (s0 `shiftL` 13)
    s2 = s1 `xor` (s1 `shiftR` 7)
    s3 = s2 `xor` (s2 `shiftL` 17)
{-# INLINE nextTarget #-}
